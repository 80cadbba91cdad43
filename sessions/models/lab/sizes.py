"""Token counts per step of a session, without its content."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import msgspec

from compaction.cache.rules import kept_by, rule_of
from compaction.cache.simulator import TTL
from compaction.context.session import Call, Usage
from compaction.context.session import Session as SessionValue
from compaction.prices.prices import Price
from compaction.proposals.protect import FIXED_KINDS
from compaction.simulation.run import Terms, terms_of
from sessions.models.record.revisions import Edit, Entry, Run
from sessions.models.record.sessions import Session

TOOL_TOKENS = 50
"""Smallest tool call or result worth offloading, in tokens: a stub takes about as many."""


class TokenRates(msgspec.Struct):
    """Price rates in nano-dollars per token."""

    uncached: int
    read: int
    write_5m: int
    write_1h: int
    output: int
    tiers: list[tuple[int, TokenRates]] = []
    """Rates for prompts above a number of tokens, smallest first."""


class KeptPrefix(msgspec.Struct):
    """How a model's automatic cache keeps prefixes (`cache.rules.KeptPrefix`), in seconds."""

    step: int
    lag: int
    behind: int
    minimum: int
    ttl: int
    writes: bool


class Sizes(msgspec.Struct):
    """The response described in `sessions/api/lab/curves.py`; each list has one item per step."""

    id: str
    title: str
    agent: str
    model: str
    steps: int
    window: int
    window_assumed: bool
    hidden: int
    price: TokenRates | None
    rules: str
    cache: str
    minimum: int
    ttl: TTL
    kept: list[KeptPrefix]
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
    """Compute the sizes of a session in its own token counting.

    Reads rows of blocks, calls and recorded edits, but no blobs; linear in their number.
    """
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
        cache=rule.cache if (rule := rule_of(session.model, terms.rules)) else "",
        minimum=terms.minimum,
        ttl=terms.ttl,
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


def _rates(price: Price) -> TokenRates:
    tiers = [(over, _rates(rates)) for over, rates in price.above]
    writes = price.cache_write_5m, price.cache_write_1h
    return TokenRates(price.input, price.cache_read, *writes, price.output, tiers)


def _kept(model: str, terms: Terms) -> KeptPrefix:
    """The cache rules of a model, as the simulator looks them up: by model name, under the
    session's rules."""
    kept = kept_by(model, terms.rules)
    ttl = kept.ttl // 1000
    return KeptPrefix(kept.step, kept.lag, kept.behind, kept.minimum, ttl, kept.writes)


class _Arrived:
    """Tokens by the step they arrived at, 0 for steps without any.

    `born` includes summaries from the log; the other lists exclude them, as a simulation starts
    without.
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
    """Messages that are recorded summaries of others (see `values.summary_messages`)."""
    found = Edit.objects.filter(revision__run__session=session, summary__isnull=False)
    return set(found.values_list("summary__message_id", flat=True))


def _recorded(session: Session, born: Iterable[int]) -> list[int]:
    """Tokens of the recorded prompt at each step, including the hidden part."""
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
    """The terms `terms_of` would derive from all calls, computed from their sums."""
    at = calls[0][1] if calls else None
    written = Usage(
        cache_write_5m=sum(call[3] or 0 for call in calls),
        cache_write_1h=sum(call[4] or 0 for call in calls),
    )
    one = Call(1, session.model, at, written)
    return terms_of(SessionValue((), (one,), session.model, session.window_taken))
