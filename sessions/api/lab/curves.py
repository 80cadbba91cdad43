"""Sizes of selected sessions, without text, from which the lab page simulates policies itself.

    GET /api/v1/simulations/curves?by=…    (as in `POST /simulations`; arrays repeat their name)

    {"basis": "estimated", "sessions": […], "left_out": n}     n: selected, but beyond the limits

Each of `sessions`, with one number per step in every list (step 1 first):

    id, title, agent, model    texts; `id` is the UUID
    steps                      int, of all of these lists
    window, window_assumed     tokens; true if the model's window is unknown
    hidden                     tokens of each prompt that the log does not show (inferred)
    price                      {uncached, read, write_5m, write_1h, output} nano-dollars a token, or
                               null: unknown; `tiers` [[tokens, price]]: what a longer prompt costs
    rules, cache               whose cache rules apply ("anthropic", another provider of
                               compaction/cache/providers, "none" or "unknown"), and that in words
    minimum, ttl               Anthropic: minimum tokens of a cached prefix; "5m" | "1h", as
                               requested by most recorded writes
    kept      [{step, lag,     the others, by model as numbered in `models`: reads are multiples of
    minimum, ttl,              `step` minus `lag`, at least `minimum` tokens, within `ttl`
    writes}]                   seconds; `writes`: whether writing has a price of its own
    models     [int]           number of the model called: 0 the first one, 1 the next new one …
    at         [int | null]    ms since the first call with a time
    blocks     [int]           blocks that arrive before the call
    other      [int]           tokens that arrive before the call and cannot be offloaded;
                               disjoint from `tools`
    fixed      [int]           of `other`: tool definitions, system prompt and memory, which are
                               never removed
    users      [int]           of `other`: user messages; a compaction keeps the newest
    tools      [[int]]         tokens of each tool call and result that arrives, over 50 tokens
    output     [int]           output tokens of the call (they arrive at the next step)
    recorded   [int]           tokens of the recorded prompt, hidden part included

Without any edits, the prompt of step N is hidden + the sum over steps 1 … N of `other` and
`tools`. Tokens are in the session's counting. Sessions without a call are
omitted; if nothing matches, the list is empty.
At most 60 sessions and 24,000 steps: about 150 KB compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse

from sessions.access import team_of
from sessions.actions.lab.choices import NoChoice, chosen_sessions, read_choice
from sessions.api.lab import shapes
from sessions.api.web.problems import Refusal
from sessions.models import Session
from sessions.models.lab.sizes import sizes_of

MOST_SESSIONS = 60
MOST_STEPS = 24_000
KEPT = 600
"""Sessions whose sizes a process caches: about 10 KB each."""


def refused(error: NoChoice, where: str) -> Refusal:
    """A 422 refusal of a choice; `where` is the prefix of its field."""
    return Refusal(422, "No sessions chosen", _sentence(error), field=where + error.field)


def _sentence(error: NoChoice) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{error.field} {text}."


def curves(request: HttpRequest, choice: shapes.SessionChoice) -> HttpResponse:
    """The operation `GET /simulations/curves`."""
    try:
        read = read_choice(choice.dict(exclude_none=True))
        chosen = chosen_sessions(team_of(request), read, empty=True)
    except NoChoice as error:
        raise refused(error, "?") from None
    shown = _within_limits(chosen)
    body = b",".join(_sizes(one.pk, one.version) for one in shown)
    left_out = len(chosen) - len(shown)
    answer = b'{"basis":"estimated","left_out":%d,"sessions":[%s]}' % (left_out, body)
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(answer, content_type="application/json", headers=headers)


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
    """The JSON of a session's sizes, cached per version."""
    return msgspec.json.encode(sizes_of(Session.objects.get(pk=session)))
