"""What a managed run has not processed: records in the store, as arrivals of its steps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Subquery

from compaction.context import edits
from compaction.context.blocks import Block
from compaction.fold.fold import Arrival, State
from sessions.actions.live.folds import Fold
from sessions.models import (
    Budget,
    Delivery,
    Edit,
    Entry,
    ManagedContext,
    ModelCall,
    Opening,
    Pin,
    Revision,
    Run,
    Session,
    ToolGraph,
)
from sessions.models.record.model_calls import usage_of
from sessions.models.record.values import blocks_of, summaries_of_log
from sessions.models.tools.tooling import retooled_at
from sessions.models.web.statements import Statement, StatementAmong, given_int, given_uuid


@dataclass(frozen=True, slots=True)
class Facts:
    """The extent of a session's records and what else there is, read in one statement; rows below
    it never change.

    `opened`: whether it has an opening. `shared`: whether it received shares. `tooled`: whether it
    has a tool graph. `budgeted`: whether its team has budgets. `pinned`: whether it has pins.
    `managed`: the id of its managed run.
    """

    steps: int = 0
    blocks: int = 0
    recorded: int = 0
    opened: bool = field(default=True, compare=False)
    shared: bool = field(default=True, compare=False)
    tooled: bool = field(default=True, compare=False)
    budgeted: bool = field(default=True, compare=False)
    pinned: bool = field(default=True, compare=False)
    managed: UUID | None = field(default=None, compare=False)

    @classmethod
    def of(cls, session: Session) -> Facts:
        row = _FACTS.first(session=session.pk)
        return cls() if row is None else cls(*row)


_OF_SESSION = {"session": OuterRef("session")}
_FACTS = Statement(
    lambda: Run.objects.filter(
        session_id=given_uuid("session"), origin=Run.Origin.RECORDED
    ).values_list(
        "session__step_count",
        "session__block_count",
        "head",
        Exists(Opening.objects.filter(**_OF_SESSION).exclude(sha="")),
        Exists(Delivery.objects.filter(**_OF_SESSION)),
        Exists(ToolGraph.objects.filter(**_OF_SESSION)),
        Exists(Budget.objects.filter(team=OuterRef("session__team"))),
        Exists(Pin.objects.filter(**_OF_SESSION)),
        Subquery(Run.objects.filter(**_OF_SESSION, origin=Run.Origin.MANAGED).values("pk")),
    )
)


@dataclass(slots=True)
class NewRecords:
    """Records in the store that a fold has not processed.

    `recorded` are (number, step) of revisions of the recorded run, `gone` positions of originals
    they removed, by step, and `compactions` the triggers of those in which the agent summarized its
    history. `retooled` are steps whose context begins otherwise than the one that the
    newest answer was made with, as far as that matters.
    `looked_at` counts the blocks processed.
    """

    blocks: list[Block]
    left_out: set[int]
    recorded: list[tuple[int, int]]
    gone: dict[int, list[int]]
    compactions: dict[int, edits.Trigger]
    pins: set[int]
    retooled: set[int]
    looked_at: int = 0

    @classmethod
    def of(cls, fold: Fold, session: Session, facts: Facts) -> NewRecords:
        """Read the records between a fold and the facts."""
        blocks: list[Block] = []
        if facts.blocks > fold.taken:
            between = {"start": fold.taken, "end": facts.blocks}
            blocks = list(blocks_of(session, with_text=True, wires=fold.wires, **between))
        summaries = any(block.kind == "summary" for block in blocks)
        left_out = summaries_of_log(session) if summaries else set()
        recorded: list[tuple[int, int]] = []
        gone: dict[int, list[int]] = {}
        compactions: dict[int, edits.Trigger] = {}
        if facts.recorded > fold.recorded:
            recorded, gone, compactions = _taken_back(session, fold.recorded, facts.recorded)
        pins = _PINS.column(session=session.pk) if facts.pinned else []
        return cls(
            blocks,
            {block.position for block in blocks if block.message in left_out},
            recorded,
            gone,
            compactions,
            {place for place in pins if place is not None},
            _retooled(session, fold, blocks, facts),
        )

    def out(self, block: Block) -> bool:
        """Whether a block is a log's summary, which managed runs exclude."""
        return block.position in self.left_out

    def begin(self, fold: Fold, target: int) -> int:
        """The first step to process: the fold's current one again if something new belongs to
        it."""
        state = fold.state
        early = bool(self.blocks) and self.blocks[0].born <= state.step
        early = early or any(step <= state.step for step in self.gone)
        if target == state.step:
            wanted = fold.run is not None and bool(fold.run.fold.get("wanted"))
            known = {place for place in self.pins if place in state.originals} - state.gone
            early = early or wanted or known != set(state.groups.pins)
        return max(state.step, 1) if early else state.step + 1

    def arrival(self, state: State, step: int, calls: StepCalls, *, last: bool) -> Arrival:
        """The changes before the call of a step; `last` if its context is wanted."""
        begin = self.looked_at
        while self.looked_at < len(self.blocks) and self.blocks[self.looked_at].born <= step:
            self.looked_at += 1
        fresh = [block for block in self.blocks[begin : self.looked_at] if not self.out(block)]
        due = [place for at in sorted(self.gone) if at <= step for place in self.gone.pop(at)]
        made = [self.compactions.pop(at) for at in sorted(self.compactions) if at <= step]
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
            not last and calls.made_without(step),
            step in self.retooled,
            made[-1] if made else None,
        )


def _retooled(session: Session, fold: Fold, blocks: list[Block], facts: Facts) -> set[int]:
    """Steps at which a tool graph lists other tools, or whose preceding answer was made before the
    agent changed its tools or system prompt; none for models that do not bind thinking."""
    if not fold.state.means.binds:
        return set()
    found = retooled_at(session) if facts.tooled else set()
    # A body may have an answer and the tools of the next call: these then count for both calls.
    changes = [(one.born, one.message) for one in blocks if one.type == "tools"]
    changes += [
        (step, int(key.rpartition("@")[2]))
        for step, key in _SETUPS.rows(session=session.pk, after=fold.state.step - 1)
    ]
    for step, message in changes:
        sent = _SENT.first(run=fold.run_id, step=step)
        if sent is not None and sent[0] < message:
            found.add(step + 1)
    return found


_SETUPS = Statement(
    lambda: Revision.objects.filter(
        run__session_id=given_uuid("session"),
        run__origin=Run.Origin.RECORDED,
        trigger="setup",
        step__gte=given_int("after"),
    ).values_list("step", "key")
)
_SENT = Statement(
    lambda: (
        ManagedContext.objects.filter(
            run_id=given_uuid("run"), step=given_int("step"), retry_of=None
        )
        .order_by("-seq")
        .values_list("seq")
    )
)


_PINS = Statement(
    lambda: Pin.objects.filter(session_id=given_uuid("session")).values_list(
        "message__blocks__position"
    )
)


def _taken_back(
    session: Session, after: int, until: int
) -> tuple[list[tuple[int, int]], dict[int, list[int]], dict[int, edits.Trigger]]:
    """Revisions of the recorded run; positions of what the agent took back in them, by step; and
    the triggers of its compactions."""
    of = {"run__session": session, "run__origin": Run.Origin.RECORDED}
    rows = Revision.objects.filter(number__gt=after, number__lte=until, **of)
    recorded = list(rows.values_list("number", "step"))
    made = rows.filter(edits__strategy=Edit.SUMMARIZED).values_list("step", "trigger")
    left = Entry.objects.filter(
        closed_by__revision__in=rows, closed_by__strategy__in=Edit.LEFT, **of
    )
    gone: dict[int, list[int]] = {}
    for place, step in left.order_by("position").values_list("position", "to_step"):
        gone.setdefault(step or 0, []).append(place)
    compactions: dict[int, Any] = dict(made)
    return recorded, gone, compactions


class StepCalls:
    """The model calls of some steps: start times and prompts."""

    def __init__(self, fold: Fold, session: Session, begin: int, end: int) -> None:
        rows = _CALLS.rows(session=session.pk, begin=begin - 1, end=end)
        self.by_step: dict[int, ModelCall] = {call.step: call for call in rows}
        named = [call.context for call in self.by_step.values() if call.context]
        managed = _MANAGED.rows(named, run=fold.run_id)
        self.ours = {context.pk: context for context in managed}
        self.now = int(time.time() * 1000)

    def at(self, step: int) -> int | None:
        """The start time of a step's call; now if it is still to come."""
        call = self.by_step.get(step)
        return call.at if call is not None else self.now

    def made_without(self, step: int) -> bool:
        """Whether the call of a step has been made, and not with a context of this run."""
        call = self.by_step.get(step)
        return call is not None and call.context not in self.ours

    def begun_before(self, step: int) -> int | None:
        """The recorded start time of the call before a step; None if unknown."""
        call = self.by_step.get(step - 1)
        return call.at if call is not None else None

    def prompt_before(self, step: int, state: State) -> tuple[int | None, int | None]:
        """The reported prompt of the previous call and our count of it (see `Arrival`), if it was
        sent a managed context; the content of other prompts is unknown."""
        call = self.by_step.get(step - 1)
        context = self.ours.get(call.context) if call is not None else None
        usage = usage_of(call) if call is not None else None
        if context is None or usage is None:
            return None, None
        return usage.opening.prompt, _sent(context, state)


_CALLS = Statement(
    lambda: ModelCall.objects.filter(
        session_id=given_uuid("session"),
        step__gte=given_int("begin"),
        step__lte=given_int("end"),
    )
)
_MANAGED = StatementAmong(
    lambda names: ManagedContext.objects.filter(run_id=given_uuid("run"), pk__in=names)
)


def _sent(context: ManagedContext, state: State) -> int | None:
    """Our count of a context without the hidden part; None if it equals the current context."""
    newest = state.originals[state.arrivals[-1]].message if state.arrivals else 0
    as_now = (context.revision, context.seq) == (state.revisions, newest)
    if as_now and not context.knowledge:
        return None
    stood = (entry.block.tokens for entry in state.entries if stood_in(context, entry))
    return sum(stood) + context.recited


def stood_in(context: ManagedContext, entry: edits.Entry) -> bool:
    """Whether an entry of its run was in a managed context."""
    return (
        entry.block.message <= context.seq
        and (entry.opened_by or 0) <= context.revision
        and (entry.closed_by is None or entry.closed_by > context.revision)
    )
