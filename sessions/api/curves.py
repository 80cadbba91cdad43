"""What the lab's page computes by itself while a slider moves: sizes of chosen sessions, no text.

    GET /api/v1/simulations/curves?by=…    (as in `POST /simulations`; arrays repeat their name)

    {"basis": "estimated", "sessions": […], "left_out": n}     n: chosen, but beyond the limits

Each of `sessions`, with one number per step in every list (step 1 first):

    id, title, agent, model    texts; `id` is the UUID
    steps                      int, of all of these lists
    window, window_assumed     tokens; true where nobody knows the model's window
    hidden                     tokens of every prompt that the log does not show (inferred)
    price                      {fresh, read, write_5m, write_1h, output} nano-dollars a token, or
                               null: unknown; `dearer` [[tokens, price]]: what a longer prompt costs
    rules                      "anthropic" | "openai" | "gemini" | "prefix" | "none" | "unknown": by
                               whose rules its cache works (compaction/cache/rules.py)
    minimum, lifetime          Anthropic: tokens that a cached prefix has at least; "5m" | "1h", as
                               most writes of the recorded calls asked
    kept      [{step, lag,     the others, by model as numbered in `models`: reads are multiples of
    minimum, lifetime,         `step` less `lag`, of `minimum` tokens at least, within `lifetime`
    writes}]                   seconds; `writes`: whether writing has a price of its own
    models     [int]           which model is called: 0 the first one, 1 the next new one …
    at         [int | null]    ms since the first call that tells its time
    blocks     [int]           blocks that arrive before the call
    other      [int]           tokens that arrive before the call and that no offload takes; all
                               that is below belongs to none of these
    fixed      [int]           of `other`: tool definitions, system prompt and memory, which nothing
                               takes out
    users      [int]           of `other`: what people said, of which a compaction keeps the newest
    tools      [[int]]         tokens of each tool call and result that arrives, over 50 tokens
    output     [int]           tokens that the call writes (they arrive at the next step)
    recorded   [int]           tokens of the prompt as it was recorded, hidden part included

So the prompt of step N with nothing ever taken out is hidden + the sum over steps 1 … N of
`other` and `tools`. Tokens are in the session's counting. Sessions without a call are left out.
A choice that nothing matches gives no sessions.
At most 60 sessions and 24,000 steps: about 150 KB compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse

from sessions.actions.choices import NoChoice, chosen_sessions, read_choice
from sessions.api import incoming
from sessions.api.access import team_of
from sessions.api.problems import Refusal
from sessions.models import Session
from sessions.models.sizes import sizes_of

MOST_SESSIONS = 60
MOST_STEPS = 24_000
KEPT = 600
"""Sessions whose sizes a process keeps: about 10 KB each."""


def refused(error: NoChoice, where: str) -> Refusal:
    """422 for a choice; `where` is what comes before the name of its field."""
    return Refusal(422, "No sessions chosen", _sentence(error), field=where + error.field)


def _sentence(error: NoChoice) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{error.field} {text}."


def curves(request: HttpRequest, choice: incoming.Choice) -> HttpResponse:
    """The operation `GET /simulations/curves`."""
    try:
        read = read_choice(choice.dict(exclude_none=True))
        chosen = chosen_sessions(team_of(request), read, empty=True)
    except NoChoice as error:
        raise refused(error, "?") from None
    shown = _within_limits(chosen)
    body = b",".join(_sizes(one.pk, one.version) for one in shown)
    left_out = len(chosen) - len(shown)
    told = b'{"basis":"estimated","left_out":%d,"sessions":[%s]}' % (left_out, body)
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(told, content_type="application/json", headers=headers)


def _within_limits(chosen: Sequence[Session]) -> list[Session]:
    shown: list[Session] = []
    steps = 0
    for session in chosen:
        if len(shown) < MOST_SESSIONS and steps + session.step_count <= MOST_STEPS:
            shown.append(session)
            steps += session.step_count
    return shown


@lru_cache(maxsize=KEPT)
def _sizes(session: UUID, version: int) -> bytes:
    """The JSON of a session's sizes, kept until it has another version."""
    return msgspec.json.encode(sizes_of(Session.objects.get(pk=session)))
