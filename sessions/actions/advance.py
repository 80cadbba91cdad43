"""Advance: bring the served run of a session up to what its agent has sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from compaction import edits
from compaction.context import Block
from compaction.fold import Arrival, State, advance
from sessions.actions.folds import Fold
from sessions.actions.runs import left_out
from sessions.models import Entry, ModelCall, Pin, Revision, Run, ServedContext, Session
from sessions.models.values import blocks_of, usage_of

SETTLED = frozenset({"rewind", "setup", "pin"})
"""Triggers of revisions that no strategy proposed: strategies still have their say after them."""


def serving(session: Session) -> Run | None:
    """The served run of a session, made at the first need; None for a session without a policy."""
    found = Run.objects.filter(session=session, origin=Run.Origin.SERVED).first()
    if found is not None or session.policy_version_id is None:
        return found
    try:
        with transaction.atomic():
            return Run.objects.create(
                session=session,
                origin=Run.Origin.SERVED,
                policy_version_id=session.policy_version_id,
                token_ratio=session.token_ratio,
                fold={"writes": 0},
            )
    except IntegrityError:
        return Run.objects.get(session=session, origin=Run.Origin.SERVED)


@dataclass(frozen=True, slots=True)
class Facts:
    """How far a session's records are, read in one statement: what lies below never changes."""

    steps: int
    blocks: int
    recorded: int

    @classmethod
    def of(cls, session: Session) -> Facts:
        row = Run.objects.filter(session=session, origin=Run.Origin.RECORDED).values_list(
            "session__step_count", "session__block_count", "head"
        )
        return cls(*(row.first() or (0, 0, 0)))


def advance_to(fold: Fold, session: Session, facts: Facts, target: int) -> None:
    """Take every step up to `target` as a simulation takes it, and store what came of it.

    A step that was taken before is taken again where something new is of it. Raises Raced.
    """
    news = _News.of(fold, session, facts)
    begin = news.begin(fold, target)
    if begin > target:
        return
    # Measuring may come later than the first usage, of which the fold learned the same.
    fold.state.hidden = session.hidden_tokens or fold.state.hidden
    fold.state.window = session.window_taken
    calls = _Calls(fold, session, begin, target)
    revisions: list[edits.Revision] = []
    for step in range(begin, target + 1):
        arrival = news.arrival(fold.state, step, calls)
        fold.late.update((b.position, step) for b in arrival.blocks if b.born != step)
        fold.weigh(arrival.blocks)
        revisions.extend(fold.stopwatch.over(_advance(fold.state, arrival)))
    fold.taken += news.looked_at
    fold.left_out = [block.position for block in news.blocks[: news.looked_at] if news.out(block)]
    fold.recorded = max([fold.recorded, *(n for n, step in news.recorded if step <= target)])
    fold.store(session, revisions)


def _advance(state: State, arrival: Arrival) -> Iterator[edits.Revision]:
    _, revision = advance(state, arrival)
    if revision is not None and revision.trigger in SETTLED:
        yield revision
        _, revision = advance(state, Arrival(arrival.step, at=arrival.at))
    if revision is not None:
        yield revision


@dataclass(slots=True)
class _News:
    """What the store has that a fold has not taken in.

    `recorded` are (number, step) of revisions of the recorded run, `gone` positions of originals
    that these took out, by the step. `looked_at` counts the blocks that a step came for.
    """

    blocks: list[Block]
    left_out: set[int]
    recorded: list[tuple[int, int]]
    gone: dict[int, list[int]]
    pins: set[int]
    looked_at: int = 0

    @classmethod
    def of(cls, fold: Fold, session: Session, facts: Facts) -> _News:
        """Read what lies between a fold and the facts."""
        blocks: list[Block] = []
        if facts.blocks > fold.taken:
            stored = blocks_of(session, with_text=True, start=fold.taken, end=facts.blocks)
            blocks = list(stored)
        summaries = any(block.kind == "summary" for block in blocks)
        recorded: list[tuple[int, int]] = []
        gone: dict[int, list[int]] = {}
        if facts.recorded > fold.recorded:
            recorded = _recorded(session, fold.recorded, facts.recorded)
            gone = _gone(session, fold.recorded, facts.recorded)
        pins = Pin.objects.filter(session=session).values_list("message__blocks__position")
        return cls(
            blocks,
            set(left_out(session)) if summaries else set(),
            recorded,
            gone,
            {place for (place,) in pins if place is not None},
        )

    def out(self, block: Block) -> bool:
        """Whether a block is a summary that the log records, which no run of ours holds."""
        return block.position in self.left_out

    def begin(self, fold: Fold, target: int) -> int:
        """The step to begin with: the fold's own again where something new is of it."""
        state = fold.state
        early = bool(self.blocks) and self.blocks[0].born <= state.step
        early = early or any(step <= state.step for step in self.gone)
        if target == state.step:
            wanted = fold.run is not None and bool(fold.run.fold.get("wanted"))
            known = {place for place in self.pins if place in state.originals} - state.gone
            early = early or wanted or known != set(state.groups.pins)
        return max(state.step, 1) if early else state.step + 1

    def arrival(self, state: State, step: int, calls: _Calls) -> Arrival:
        """What is new before the call of a step."""
        begin = self.looked_at
        while self.looked_at < len(self.blocks) and self.blocks[self.looked_at].born <= step:
            self.looked_at += 1
        fresh = [block for block in self.blocks[begin : self.looked_at] if not self.out(block)]
        due = [place for at in sorted(self.gone) if at <= step for place in self.gone.pop(at)]
        new = {block.position for block in fresh} if self.pins else set()
        left = {place for place in self.pins if place in state.originals or place in new}
        pins = left - state.gone - set(due)
        now = set(state.groups.pins)
        return Arrival(
            step,
            tuple(fresh),
            calls.at(step),
            *calls.prompt_before(step, state),
            tuple(due),
            tuple(sorted(pins - now)),
            tuple(sorted(now - pins)),
            calls.begun_before(step),
        )


def _recorded(session: Session, after: int, until: int) -> list[tuple[int, int]]:
    rows = Revision.objects.filter(
        run__session=session,
        run__origin=Run.Origin.RECORDED,
        number__gt=after,
        number__lte=until,
    )
    return list(rows.values_list("number", "step"))


def _gone(session: Session, after: int, until: int) -> dict[int, list[int]]:
    """Positions of originals that the agent itself took back, by the step it did so."""
    rows = Entry.objects.filter(
        run__session=session,
        run__origin=Run.Origin.RECORDED,
        closed_by__revision__number__gt=after,
        closed_by__revision__number__lte=until,
        closed_by__revision__trigger__in=("rewind", "setup"),
    )
    gone: dict[int, list[int]] = {}
    for place, step in rows.order_by("position").values_list("position", "to_step"):
        gone.setdefault(step or 0, []).append(place)
    return gone


class _Calls:
    """The model calls of some steps: when they began, and what their prompts took."""

    def __init__(self, fold: Fold, session: Session, begin: int, end: int) -> None:
        rows = session.calls.filter(step__range=(begin - 1, end))
        self.by_step: dict[int, ModelCall] = {call.step: call for call in rows}
        named = [call.context for call in self.by_step.values() if call.context]
        served = ServedContext.objects.filter(run_id=fold.run_id, pk__in=named) if named else ()
        self.ours = {context.pk: context for context in served}
        self.now = int(time.time() * 1000)

    def at(self, step: int) -> int | None:
        """When the call of a step began; now where it is still to come."""
        call = self.by_step.get(step)
        return call.at if call is not None else self.now

    def begun_before(self, step: int) -> int | None:
        """When the call before a step began, as it was recorded; None where that is unknown."""
        call = self.by_step.get(step - 1)
        return call.at if call is not None else None

    def prompt_before(self, step: int, state: State) -> tuple[int | None, int | None]:
        """Reported prompt of the call before and our count of it (see `Arrival`), where its context
        was one that we handed out: of any other nobody knows what stood in it."""
        call = self.by_step.get(step - 1)
        context = self.ours.get(call.context) if call is not None else None
        usage = usage_of(call) if call is not None else None
        if context is None or usage is None:
            return None, None
        return usage.prompt, _sent(context, state)


def _sent(context: ServedContext, state: State) -> int | None:
    """Our count of a context without the hidden part; None where it is what stands now."""
    newest = state.originals[state.arrivals[-1]].message if state.arrivals else 0
    as_now = (context.revision, context.seq) == (state.revisions, newest)
    if as_now and not context.knowledge:
        return None
    stood = (entry.block.tokens for entry in state.entries if stood_in(context, entry))
    return sum(stood) + context.recited


def stood_in(context: ServedContext, entry: edits.Entry) -> bool:
    """Whether an entry of its run stood in a context that was handed out."""
    return (
        entry.block.message <= context.seq
        and (entry.opened_by or 0) <= context.revision
        and (entry.closed_by is None or entry.closed_by > context.revision)
    )
