"""How many tokens arrive and stand at each step of a session, without its content."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import msgspec

from compaction.cache.rules import kept_by
from compaction.cache.run import Terms, terms_of
from compaction.cache.simulator import Lifetime
from compaction.prices import Price
from compaction.protect import FIXED_KINDS
from compaction.session import Call, Usage
from compaction.session import Session as SessionValue
from sessions.models.revisions import Edit, Entry, Run
from sessions.models.sessions import Session

TOOL_TOKENS = 50
"""Tool calls and results up to so many tokens are no use to offload: a stub takes as much."""


class Rates(msgspec.Struct):
    """Nano-dollars a token, as a price table gives them."""

    fresh: int
    read: int
    write_5m: int
    write_1h: int
    output: int
    dearer: list[tuple[int, Rates]] = []
    """What a call costs whose prompt exceeds so many tokens, the fewest first."""


class Kept(msgspec.Struct):
    """How the automatic cache of one model keeps prefixes (`cache.rules.Kept`), in seconds."""

    step: int
    lag: int
    behind: int
    minimum: int
    lifetime: int
    writes: bool


class Sizes(msgspec.Struct):
    """What `sessions/api/curves.py` describes; every list has one item per step."""

    id: str
    title: str
    agent: str
    model: str
    steps: int
    window: int
    window_assumed: bool
    hidden: int
    price: Rates | None
    rules: str
    minimum: int
    lifetime: Lifetime
    kept: list[Kept]
    models: list[int]
    at: list[int | None]
    blocks: list[int]
    other: list[int]
    fixed: list[int]
    users: list[int]
    tools: list[list[int]]
    output: list[int]
    recorded: list[int]


def sizes_of(session: Session) -> Sizes:
    """The sizes of one session, tokens in its counting. Reads rows of blocks, calls and recorded
    edits, no blobs; linear in these."""
    steps = session.step_count
    calls = list(
        session.calls.order_by("step").values_list(
            "step", "at", "output", "cache_write_5m", "cache_write_1h", "model"
        )
    )
    arrived = _Arrived(session)
    terms = _terms(session, calls)
    ats = {step: at for step, at, *_ in calls}
    began = next((at for _, at, *_ in calls if at is not None), 0)
    outputs = {step: output for step, _, output, *_ in calls}
    by_step = {step: model for step, *_, model in calls}
    called = [by_step.get(step, "") for step in range(1, steps + 1)]
    numbers = {model: place for place, model in enumerate(dict.fromkeys(called))}
    return Sizes(
        id=str(session.pk),
        title=str(session),
        agent=session.agent,
        model=session.model,
        steps=steps,
        window=session.window_taken,
        window_assumed=session.window is None,
        hidden=session.hidden_tokens,
        price=_rates(terms.price) if terms.price else None,
        rules=terms.rules,
        minimum=terms.minimum,
        lifetime=terms.lifetime,
        kept=[_kept(model, terms) for model in numbers],
        models=[numbers[model] for model in called],
        at=[None if (at := ats.get(step)) is None else at - began for step in range(1, steps + 1)],
        blocks=arrived.blocks[1 : steps + 1],
        other=arrived.other[1 : steps + 1],
        fixed=arrived.fixed[1 : steps + 1],
        users=arrived.users[1 : steps + 1],
        tools=arrived.tools[1 : steps + 1],
        output=[
            arrived.written[step + 1] if (output := outputs.get(step)) is None else output
            for step in range(1, steps + 1)
        ],
        recorded=_recorded(session, arrived.born),
    )


def _rates(price: Price) -> Rates:
    dearer = [(over, _rates(rates)) for over, rates in price.above]
    writes = price.cache_write_5m, price.cache_write_1h
    return Rates(price.input, price.cache_read, *writes, price.output, dearer)


def _kept(model: str, terms: Terms) -> Kept:
    """As the simulator asks for it: by the name of each model, under the rules of the session."""
    kept = kept_by(model, terms.rules)
    lifetime = kept.lifetime // 1000
    return Kept(kept.step, kept.lag, kept.behind, kept.minimum, lifetime, kept.writes)


class _Arrived:
    """Tokens by the step of their birth; the list of a step that has none holds zeros.

    `born` is all of it, summaries of the log included; the others are what a simulation starts
    from, which leaves those out.
    """

    def __init__(self, session: Session) -> None:
        places = session.step_count + 2
        self.born, self.other = [0] * places, [0] * places
        self.users, self.written = [0] * places, [0] * places
        self.blocks, self.fixed = [0] * places, [0] * places
        self.tools: list[list[int]] = [[] for _ in range(places)]
        summaries = _summary_messages(session)
        rows = session.blocks.order_by("position").values_list(
            "born", "type", "kind", "message__role", "tokens", "message_id"
        )
        for birth, form, kind, role, stored, message in rows:
            step, tokens = min(max(birth, 1), places - 1), session.scaled(stored)
            self.born[step] += tokens
            if message in summaries:
                continue
            self.blocks[step] += 1
            if role == "assistant":
                self.written[step] += tokens
            if form in ("tool_use", "tool_result") and tokens > TOOL_TOKENS:
                self.tools[step].append(tokens)
                continue
            self.other[step] += tokens
            if kind in FIXED_KINDS or role == "system":
                self.fixed[step] += tokens
            elif kind == "user":
                self.users[step] += tokens


def _summary_messages(session: Session) -> set[int]:
    """Messages that stand for others in the recorded contexts (see `values.summary_messages`)."""
    found = Edit.objects.filter(revision__run__session=session, summary__isnull=False)
    return set(found.values_list("summary__message_id", flat=True))


def _recorded(session: Session, born: Iterable[int]) -> list[int]:
    """Tokens of the recorded prompt at each step, the hidden part included."""
    changes = [*born, 0]
    last = len(changes) - 1
    entries = Entry.objects.filter(run__session=session, run__origin=Run.Origin.RECORDED)
    rows = entries.values_list(
        "from_step", "to_step", "block__tokens", "block__born", "replacement__tokens"
    )
    for start, end, original, birth, replaced in rows:
        tokens = session.scaled(original if replaced is None else replaced)
        if replaced is None:
            changes[min(birth, last)] -= tokens
        changes[min(start, last)] += tokens
        if end is not None:
            changes[min(end, last)] -= tokens
    standing = list(accumulate(changes))
    return [session.hidden_tokens + tokens for tokens in standing[1 : session.step_count + 1]]


def _terms(
    session: Session, calls: list[tuple[int, int | None, int | None, int | None, int | None, str]]
) -> Terms:
    """As `terms_of` tells them of all the calls, from their sums."""
    at = calls[0][1] if calls else None
    written = Usage(
        cache_write_5m=sum(call[3] or 0 for call in calls),
        cache_write_1h=sum(call[4] or 0 for call in calls),
    )
    one = Call(1, session.model, at, written)
    return terms_of(SessionValue((), (one,), session.model, session.window_taken))
