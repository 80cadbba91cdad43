"""The fold: what the model will see next, from what stood before and what is new."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context import Block
from compaction.edits import Edit, Refusal, Revision, Trigger
from compaction.objections import objection
from compaction.plan import Proposal, Span, View
from compaction.protect import Guard
from compaction.recitation.layers import ending_of
from compaction.restore import left, pinned_again
from compaction.resume import follow, marks_of, resume
from compaction.state import EVEN, State, make, numbered, set_pinned, start, take_in
from compaction.strategies import STRATEGIES

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
"""Refusals of one strategy after which it is left out (Claude Code gives up after as many)."""

LEAST_SCALE, MOST_SCALE = 500, 3_000
"""Permille of our count that a provider's is believed to be (as `tokens.calibrate`)."""


class OutOfOrder(ValueError):
    """An arrival whose step or positions do not follow those before it."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is new just before the model call of a step: originals born since the last arrival.

    `at` is when the call begins (ms since the epoch). `prompt` are the prompt tokens that the
    provider reported for the previous call, of a context of this very fold; None where it reported
    none, or for a context that a simulation made. `sent` are the tokens of that context without
    the hidden part as we count them; None where it is what stands now. `gone` are positions of
    originals that the agent took back (a rewind, a newer setup), `pinned` and `unpinned` those that
    people pinned and let loose. `last` is when the newest call before it began, as it was recorded;
    None for what was told before.
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


def advance(state: State, arrival: Arrival) -> tuple[State, Revision | None]:
    """Bring a state to the next step, or take in more before the same one; say what changed.

    The state given is consumed: it is changed in place and returned, so that a step costs what is
    new and not the history. Edits that would break the context are refused, the context before
    them stands, and `state.refusals` says why. Where something is gone or pinned and the context
    changes by that, this is a revision of its own: strategies have their say at the next call,
    which may be for the same step. Raises OutOfOrder and leaves the state as it was when the step
    or a position does not ascend.
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
    revision = _settle(state, arrival) or _revise(state)
    if state.touched is not None:
        state.unchanged_prefix = min(before, state.prefix_tokens(state.touched))
    state.ending = ending_of(state)
    return state, revision


def _learn(state: State, prompt: int, sent: int | None) -> None:
    """Take in how far our count is from the provider's.

    It is a ratio, as a difference would outlive the compaction of what it came from. What the first
    prompt has beyond its blocks is hidden from us, where nobody has measured that.
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
    """What is gone, pinned or let loose, as a revision where the context changes by it."""
    for place in arrival.unpinned:
        set_pinned(state, place, pinned=False)
    before, edits, trigger = state.total, [], None
    if arrival.gone and (found := left(state, arrival.gone)):
        trigger, edit = found
        edits.append(edit)
        make(state, edit, state.revisions + 1, state.step)
    if arrival.pinned and (again := pinned_again(state, arrival.pinned)):
        trigger = trigger or "pin"
        edits.append(again)
        make(state, again, state.revisions + 1, state.step)
    return numbered(state, trigger, edits, before) if trigger else None


def _revise(state: State) -> Revision | None:
    before = state.total
    edits: list[Edit] = []
    reasons: list[str] = []
    trigger: Trigger | None = None
    for index, step in enumerate(state.policy.steps):
        if state.failures[index] >= BREAKER:
            continue
        proposal = STRATEGIES[step.strategy].propose(view_of(state, index), step.parameters)
        if state.waiting[index] is not None and not (proposal.edits or proposal.wanted):
            # So much has come that the summary that is being written would no longer do.
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
    return numbered(state, trigger, edits, before, "; ".join(filter(None, reasons)))


def view_of(state: State, index: int | None, limit: int | None = None) -> View:
    """What the policy's strategy at that place sees; with None, what a request does.

    `limit` is the position before which all edits of a request lie, None for no limit.
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
        tokens_before=state.prefix_tokens,
        repeats=state.repeats,
        rounds=state.rounds,
        idle=state.idle,
    )


def _accept(state: State, index: int, proposal: Proposal) -> bool:
    strategy = state.policy.steps[index].strategy
    state.wanted.extend(proposal.wanted)
    spans = [wish for wish in proposal.wanted if isinstance(wish, Span)]
    # While a summary is written, more arrives: what it was asked for must still be what is asked.
    state.waiting[index] = end_of(spans[0]) if spans else None
    if proposal.skipped:
        state.skipped.append(f"{strategy}: {proposal.skipped}")
    if proposal.edits:
        reason = objection(state, proposal.edits)
        if reason:
            state.failures[index] += 1
            state.refusals.append(Refusal(state.step, strategy, reason))
            return False
        for edit in proposal.edits:
            make(state, edit, state.revisions + 1, state.step)
        state.failures[index] = 0
    state.marks[index] = proposal.mark
    return True


def end_of(span: Span) -> int:
    """The position before which all of a span lies."""
    return max(block.position for block in (*span.blocks, *span.kept)) + 1
