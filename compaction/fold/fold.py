"""The fold: advance a managed context by new arrivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compaction.context.blocks import Block
from compaction.context.edits import Edit, RefusedEdits, Revision, Trigger
from compaction.context.ranges import ranges_of
from compaction.fold.binding import invalid_thinking, unbound_by
from compaction.fold.layers import ending_of
from compaction.fold.objections import objection
from compaction.fold.restore import left, pinned_again
from compaction.fold.state import (
    EVEN,
    State,
    leave_for_good,
    make,
    numbered,
    pinned,
    set_pinned,
    start,
    take_in,
)
from compaction.proposals.plan import Proposal, Span, View
from compaction.proposals.protect import Guard
from compaction.strategies import STRATEGIES, entered_short

__all__ = [
    "Arrival",
    "OutOfOrder",
    "State",
    "advance",
    "end_of",
    "follow",
    "marks_of",
    "resume",
    "start",
]

BREAKER = 3
"""Refusals after which a strategy is disabled (Claude Code gives up after as many)."""

LEAST_SCALE, MOST_SCALE = 500, 3_000
"""Plausible range of the provider's count in permille of ours (as in `token_ratio`)."""


class OutOfOrder(ValueError):
    """An arrival whose step or positions do not follow the earlier ones."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is new just before the model call of a step: originals born since the last arrival.

    `at` is when the call begins (ms since the epoch). `prompt` is the number of prompt tokens that
    the provider reported for the previous call with a context of this fold; None if it reported
    none, or for a simulated context. `sent` is our own count of that context without the hidden
    part; None if it is the current context. `gone` are positions of originals that the agent
    removed, in a `compaction` if it summarized them; `pinned`, `unpinned` those that people did.
    `last` is when the newest call before it began, as recorded; None if that was given earlier.
    `past` says that the call was made without this context: nothing is decided for it; `retooled`,
    that it begins with other tools or another system prompt than the newest answer was made with.
    """

    step: int
    blocks: tuple[Block, ...] = ()
    at: int | None = None
    prompt: int | None = None
    sent: int | None = None
    gone: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    unpinned: tuple[int, ...] = ()
    last: int | None = None
    past: bool = False
    retooled: bool = False
    compaction: Trigger | None = None


def advance(state: State, arrival: Arrival) -> tuple[State, Revision | None]:
    """Advance the state by one arrival and return the revision it caused, if any.

    The state is modified in place and returned, so that a step costs only what is new. Edits that
    would break the context are refused: the context stays, and `state.refusals` says why. If
    originals are removed or pinned and the context changes, that is a revision of its own;
    strategies run at the next call, which may be for the same step. Raises OutOfOrder, with the
    state unchanged, if the step or a position does not ascend.
    """
    _check_order(state, arrival)
    before = state.total
    if arrival.step > state.step and arrival.prompt:
        _learn(state, arrival.prompt, arrival.sent)
    state.step = arrival.step
    state.last = state.last if arrival.last is None else arrival.last
    if arrival.at is not None and state.last is not None:
        state.idle = max(arrival.at - state.last, 0)
    else:
        state.idle = None
    state.unchanged_prefix, state.touched = before, None
    state.wanted, state.skipped = [], []
    for block in arrival.blocks:
        take_in(state, block, state.step)
    state.used = state.billed
    revision = _settle(state, arrival) or (None if arrival.past else _revise(state, arrival))
    if state.touched is not None:
        state.unchanged_prefix = min(before, state.prefix_tokens(state.touched))
    state.ending = ending_of(state)
    return state, revision


def _learn(state: State, prompt: int, sent: int | None) -> None:
    """Learn the ratio of the provider's count to ours.

    A ratio, because a difference would outlive the compaction of the blocks that caused it. What
    the first prompt has beyond its blocks counts as hidden, unless that was measured.
    """
    sent = state.counted - state.hidden if sent is None else sent
    if state.scale is None and not state.hidden:
        state.hidden = max(prompt - sent, 0)
    counted = max(state.hidden + sent, 1)
    state.scale = min(max(round(EVEN * prompt / counted), LEAST_SCALE), MOST_SCALE)


def _check_order(state: State, arrival: Arrival) -> None:
    if arrival.step < state.step:
        raise OutOfOrder(f"step {arrival.step} after step {state.step}")
    last = state.arrivals[-1] if state.arrivals else None
    for block in arrival.blocks:
        if last is not None and block.position <= last:
            raise OutOfOrder(f"position {block.position} after {last}")
        last = block.position


def _settle(state: State, arrival: Arrival) -> Revision | None:
    """Apply removals, pins and unpins; return a revision if the context changes."""
    for place in arrival.unpinned:
        set_pinned(state, place, pinned=False)
    before, edits, trigger = state.total, [], None
    if arrival.gone and (found := left(state, arrival.gone, arrival.compaction)):
        trigger, edit = found
        edits.append(edit)
        make(state, edit, state.revisions + 1, state.step)
    if arrival.pinned and (again := pinned_again(state, arrival.pinned)):
        trigger = trigger or "pin"
        edits.append(again)
        make(state, again, state.revisions + 1, state.step)
    if trigger is None:
        return None
    if unbound := invalid_thinking(state):
        edits.append(unbound)
    return numbered(state, trigger, edits, before)


def _revise(state: State, arrival: Arrival) -> Revision | None:
    before = state.total
    edits: list[Edit] = []
    reasons: list[str] = []
    trigger: Trigger | None = None
    if unbound := unbound_by(state, arrival.blocks, arrival.retooled):
        edits.append(unbound)
        reasons.append(unbound.reason)
        trigger = "entry"
    if any(block.role == "assistant" for block in arrival.blocks):
        state.requested = None  # the next answer will have seen it
    for index, step in enumerate(state.policy.steps):
        if state.failures[index] >= BREAKER:
            continue
        proposal = STRATEGIES[step.strategy].propose(view_of(state, index), step.parameters)
        if state.waiting[index] is not None and not (proposal.edits or proposal.wanted):
            # So much has arrived that the pending summary would be outdated.
            state.waiting[index] = None
            proposal = STRATEGIES[step.strategy].propose(view_of(state, index), step.parameters)
        if not _accept(state, index, proposal):
            continue
        if proposal.edits:
            edits.extend(proposal.edits)
            reasons.append(proposal.reason)
            trigger = trigger if trigger == "window" else proposal.trigger
    if trigger is None:
        return None
    if unbound := invalid_thinking(state):
        edits.append(unbound)
    return numbered(state, trigger, edits, before, "; ".join(filter(None, reasons)))


def view_of(state: State, index: int | None, limit: int | None = None) -> View:
    """Return what the strategy at that place of the policy sees; with None, what a request sees.

    `limit` is the position before which all edits of a request must be, None for no limit.
    """
    return View(
        step=state.step,
        turn=state.groups.turn,
        standing=state.standing,
        arrivals=state.arrivals,
        originals=state.originals,
        total=state.total,
        used=state.used,
        scale=state.scale or EVEN,
        room=state.window - state.policy.kept_free(state.window),
        guard=Guard(state.groups, limit if index is None else state.waiting[index]),
        means=state.means,
        mark={} if index is None else state.marks[index],
        sights=state.sights,
        objective=state.policy.objective,
        known=state.known,
        ripening=state.ripening,
        mentions=state.mentions,
        tokens_before=state.prefix_tokens,
        entered_short=entered_short,
        repeats=state.repeats,
        rounds=state.rounds,
        idle=state.idle,
    )


def _accept(state: State, index: int, proposal: Proposal) -> bool:
    strategy = state.policy.steps[index].strategy
    state.wanted.extend(proposal.wanted)
    spans = [wish for wish in proposal.wanted if isinstance(wish, Span)]
    # More arrives while a summary is written: keep asking for the same span.
    state.waiting[index] = end_of(spans[0]) if spans else None
    if proposal.skipped:
        state.skipped.append(f"{strategy}: {proposal.skipped}")
    if proposal.edits:
        reason = objection(state, proposal.edits)
        if reason:
            state.failures[index] += 1
            state.refusals.append(RefusedEdits(state.step, strategy, reason))
            return False
        for edit in proposal.edits:
            make(state, edit, state.revisions + 1, state.step)
        state.failures[index] = 0
    state.marks[index] = proposal.mark
    return True


def end_of(span: Span) -> int:
    """Return the position after the last block of a span."""
    return max(block.position for block in (*span.blocks, *span.kept)) + 1


# Go on from what is stored


def follow(state: State, revision: Revision) -> None:
    """Apply a revision that another process made, without asking any strategy."""
    state.touched = None
    for edit in revision.edits:
        make(state, edit, revision.number, revision.step)
    state.made.append(revision)
    state.step = max(state.step, revision.step)


def marks_of(state: State) -> dict[str, Any]:
    """Return what must be stored besides blocks and revisions to resume; plain JSON values."""
    return {
        "step": state.step,
        "last": state.last,
        "window": state.window,
        "hidden": state.hidden,
        "scale": state.scale,
        "requested": state.requested,
        "bound": state.bound,
        "marks": [dict(mark) for mark in state.marks],
        "failures": list(state.failures),
        "waiting": list(state.waiting),
        "pins": list(pinned(state)),
        "gone": [[r.start, r.stop - 1] for r in ranges_of(state.gone)] if state.gone else [],
    }


def resume(
    state: State,
    arrived: Iterable[tuple[int, Block]],
    revisions: Iterable[Revision],
    marks: Mapping[str, Any],
) -> State:
    """Bring a new or older state up to what is stored.

    `arrived` are the originals added since, unpinned, each with the step before which it arrived;
    `revisions` those made since; `marks` come from `marks_of`, or an export: taken where they fit.
    """
    for step, block in arrived:
        take_in(state, block, step)
    for revision in revisions:
        follow(state, revision)
    state.step, state.window, state.last = marks["step"], marks["window"], marks.get("last")
    state.hidden, state.scale = marks["hidden"], marks.get("scale")
    state.requested, state.bound = marks.get("requested"), marks.get("bound", True)
    if len(marks["marks"]) == len(state.marks):
        state.marks = [{**own, **one} for own, one in zip(state.marks, marks["marks"], strict=True)]
        state.failures, state.waiting = list(marks["failures"]), list(marks["waiting"])
    for place in (set(pinned(state)) ^ set(marks["pins"])) & state.originals.keys():
        set_pinned(state, place, pinned=place in marks["pins"])
    leave_for_good(state, {p for one in marks["gone"] for p in range(one[0], one[1] + 1)})
    state.ending = ending_of(state)
    return state
