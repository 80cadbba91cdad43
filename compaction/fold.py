"""The fold: what the model will see next, from what stood before and what is new."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compaction.context import KINDS, Block, Context, Kind
from compaction.edits import Edit, Entry, Refusal, Revision, Trigger
from compaction.groups import Groups
from compaction.invariants import broken_by
from compaction.plan import FileText, Mark, Means, Proposal, Span, View
from compaction.policy import Policy
from compaction.prefix import PrefixSums
from compaction.protect import Guard
from compaction.strategies import STRATEGIES

BREAKER = 3
"""Refusals of one strategy after which it is left out (Claude Code gives up after as many)."""


class OutOfOrder(ValueError):
    """An arrival whose step or positions do not follow those before it."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is new just before the model call of a step: originals born since the step before.

    `at` is when the call begins (ms since the epoch). `prompt` are the prompt tokens that the
    provider reported for the previous call *of this very context*; None where it reported none,
    or for a context that a simulation made.
    """

    step: int
    blocks: tuple[Block, ...] = ()
    at: int | None = None
    prompt: int | None = None


@dataclass(slots=True)
class State:
    """A session's context under a policy, after `step`; made by `start`, changed by `advance`.

    `standing` is the context, `entries` the record of when each block stood, `sums` its tokens by
    place in `arrivals`. `unchanged_prefix` and `touched` speak of the last step: tokens shared
    with the context before, and the lowest position that its revision touched. `wanted` are
    summaries that were not ready at the last step, `skipped` why strategies that were due did
    nothing. `stubs` are the positions of standing replacements, ascending.
    """

    policy: Policy
    means: Means
    window: int
    hidden: int
    step: int = 0
    standing: Context = field(default_factory=dict)
    originals: Context = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
    sums: PrefixSums = field(default_factory=PrefixSums)
    by_kind: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    total: int = 0
    used: int = 0
    groups: Groups = field(default_factory=Groups)
    marks: list[Mark] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    open_entries: dict[int, Entry] = field(default_factory=dict)
    stubs: list[int] = field(default_factory=list)
    revisions: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    wanted: list[Span | FileText] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unchanged_prefix: int = 0
    touched: int | None = None

    def prefix_tokens(self, position: int) -> int:
        """Tokens of the standing blocks before a position, in O(log n)."""
        return self.sums.before(bisect_left(self.arrivals, position))

    @property
    def frontier(self) -> int:
        """Tokens up to and including the last standing replacement; 0 without one."""
        return self.prefix_tokens(self.stubs[-1] + 1) if self.stubs else 0


def start(policy: Policy, window: int, means: Means, hidden: int = 0) -> State:
    """An empty context under a policy; `window` and `hidden` are the session's, in tokens."""
    marks = [dict(STRATEGIES[step.strategy].mark) for step in policy.steps]
    return State(policy, means, window, hidden, marks=list(marks), failures=[0] * len(marks))


def advance(state: State, arrival: Arrival) -> tuple[State, Revision | None]:
    """Bring a state to the next step and say what changed.

    The state given is consumed: it is changed in place and returned, so that a step costs what is
    new and not the history. Edits that would break the context are refused, the context before
    them stands, and `state.refusals` says why. Raises OutOfOrder and leaves the state as it was
    when the step or a position does not ascend.
    """
    _check_order(state, arrival)
    before = state.total
    state.step = arrival.step
    state.unchanged_prefix, state.touched = before, None
    state.wanted, state.skipped = [], []
    for block in arrival.blocks:
        _take_in(state, block)
    known_prompt = arrival.prompt or 0
    state.used = max(state.hidden + state.total, known_prompt + state.total - before)
    revision = _revise(state)
    if state.touched is not None:
        state.unchanged_prefix = min(before, state.prefix_tokens(state.touched))
    return state, revision


def _check_order(state: State, arrival: Arrival) -> None:
    if arrival.step <= state.step:
        raise OutOfOrder(f"step {arrival.step} after step {state.step}")
    last = state.arrivals[-1] if state.arrivals else None
    for block in arrival.blocks:
        if last is not None and block.position <= last:
            raise OutOfOrder(f"position {block.position} after {last}")
        last = block.position


def _take_in(state: State, block: Block) -> None:
    position = block.position
    state.arrivals.append(position)
    state.sums.append(block.tokens)
    state.standing[position] = state.originals[position] = block
    state.known[block.id] = position
    state.by_kind[block.kind] += block.tokens
    state.total += block.tokens
    state.groups.add(block)
    entry = Entry(block, state.step)
    state.entries.append(entry)
    state.open_entries[position] = entry


def _revise(state: State) -> Revision | None:
    before = state.total
    edits: list[Edit] = []
    reasons: list[str] = []
    trigger: Trigger | None = None
    for index, step in enumerate(state.policy.steps):
        if state.failures[index] >= BREAKER:
            continue
        proposal = STRATEGIES[step.strategy].propose(_view(state, index), step.parameters)
        if not _accept(state, index, proposal):
            continue
        if proposal.edits:
            edits.extend(proposal.edits)
            reasons.append(proposal.reason)
            trigger = trigger if trigger == "window" else proposal.trigger
    if trigger is None:
        return None
    state.revisions += 1
    reason = "; ".join(filter(None, reasons))
    return Revision(state.revisions, state.step, trigger, tuple(edits), before, state.total, reason)


def _view(state: State, index: int) -> View:
    return View(
        step=state.step,
        turn=state.groups.turn,
        standing=state.standing,
        arrivals=state.arrivals,
        originals=state.originals,
        total=state.total,
        used=state.used,
        fixed=state.used - state.total,
        room=state.window - state.policy.reserve,
        guard=Guard(state.groups),
        means=state.means,
        mark=state.marks[index],
    )


def _accept(state: State, index: int, proposal: Proposal) -> bool:
    strategy = state.policy.steps[index].strategy
    state.wanted.extend(proposal.wanted)
    if proposal.skipped:
        state.skipped.append(f"{strategy}: {proposal.skipped}")
    if proposal.edits:
        reason = _objection(state, proposal.edits)
        if reason:
            state.failures[index] += 1
            state.refusals.append(Refusal(state.step, strategy, reason))
            return False
        for edit in proposal.edits:
            _edit(state, edit)
        state.failures[index] = 0
    state.marks[index] = proposal.mark
    return True


def _objection(state: State, edits: Iterable[Edit]) -> str:
    """Why these edits may not be made; empty when they may."""
    places: set[int] = set()
    after: dict[int, Block | None] = {}
    ids: dict[str, int] = {}
    for edit in edits:
        targets = []
        for target in edit.targets:
            position = ids.get(target, state.known.get(target, -1))
            stands = after[position] if position in after else state.standing.get(position)
            if stands is None or stands.id != target:
                return f"{target} does not stand in the context"
            targets.append(position)
            after[position] = None
            places.add(position)
            places.update(state.groups.companions(state.originals[position]))
        if not targets or targets != sorted(targets):
            return "targets are not in context order"
        if edit.replacement is not None:
            if edit.replacement.position != targets[0]:
                return f"{edit.replacement.id} does not stand at its first target"
            ids[edit.replacement.id] = targets[0]
            after[targets[0]] = edit.replacement
    standing = state.standing
    old = {place: standing[place] for place in sorted(places) if place in standing}
    merged: Mapping[int, Block | None] = old | after
    new = {place: block for place in sorted(merged) if (block := merged[place]) is not None}
    broken = broken_by(old, new, ChainMap(ids, state.known))
    return "; ".join(str(one) for one in broken[:5])


def _edit(state: State, edit: Edit) -> None:
    number = state.revisions + 1
    places = [state.known[target] for target in edit.targets]
    for place in places:
        _close(state, place, number)
    first, block = places[0], edit.replacement
    state.touched = first if state.touched is None else min(state.touched, first)
    for place in places[1:] if block is not None else places:
        del state.standing[place]
    if block is None:
        return
    # Assigned over the old value, never deleted first: that keeps the dict in context order.
    state.standing[first] = block
    state.known[block.id] = first
    state.sums.add(bisect_left(state.arrivals, first), block.tokens)
    state.by_kind[block.kind] += block.tokens
    state.total += block.tokens
    entry = Entry(block, state.step, opened_by=number)
    state.entries.append(entry)
    state.open_entries[first] = entry
    insort(state.stubs, first)


def _close(state: State, position: int, number: int) -> None:
    block = state.standing[position]
    state.sums.add(bisect_left(state.arrivals, position), -block.tokens)
    state.by_kind[block.kind] -= block.tokens
    state.total -= block.tokens
    entry = state.open_entries.pop(position)
    entry.to_step, entry.closed_by = state.step, number
    if block.replaces is not None:
        del state.stubs[bisect_left(state.stubs, position)]
