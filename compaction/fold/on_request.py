"""Requests by people: undo a revision, compact now."""

from __future__ import annotations

from compaction.context.edits import CannotCompact, Edit, Revision, Trigger
from compaction.fold.binding import invalid_thinking
from compaction.fold.fold import view_of
from compaction.fold.layers import ending_of
from compaction.fold.objections import objection
from compaction.fold.restore import taken_back
from compaction.fold.state import State, make, numbered
from compaction.strategies.compact import targets_of
from compaction.strategies.compact_settings import Compact
from compaction.summaries.spans import form_for, span_of, summary_edit

LEAST_SUMMARY = 100
"""Minimum tokens of a useful summary (our choice)."""


def undo(state: State, number: int) -> Revision:
    """Undo a revision by a new revision. Raises CannotUndo and changes nothing."""
    edit = taken_back(state, number)
    return _made(state, "undo", edit, {one.strategy for one in state.made[number - 1].edits})


def compact_now(
    state: State, instructions: str = "", until: int | None = None, *, done: bool = False
) -> Revision | None:
    """Compact everything possible, before position `until` at most; `done`: as for a finished task.

    Returns None while the summary is being written: it is in `state.wanted` then, and a request
    with `end_of` that span as `until` asks for the same one. Settings are those of the policy's own
    compaction, or the defaults. Raises CannotCompact and changes nothing.
    """
    steps = [step.parameters for step in state.policy.steps if step.strategy == "compact"]
    parameters = steps[0] if steps else Compact()
    view = view_of(state, None, until)
    targets, kept = targets_of(view, parameters)
    gone = sum(block.tokens for block in targets)
    budget = min(parameters.summary_tokens, gone // 2)
    if budget < LEAST_SUMMARY:
        raise CannotCompact(f"Only {gone} tokens could be removed, no more than a summary takes.")
    given = "\n".join(filter(None, (parameters.instructions, instructions)))
    wish = span_of(view, form_for(parameters.form, done), targets, kept, budget, given)
    edit = summary_edit(view, "compact", wish, targets)
    state.wanted = [] if edit is not None else [wish]
    if edit is None:
        return None
    if reason := objection(state, (edit,)):
        raise CannotCompact(f"The context would break: {reason}.")
    return _made(state, "task_done" if done else "request", edit, {"compact"})


def _made(state: State, trigger: Trigger, edit: Edit, strategies: set[str]) -> Revision:
    """Return a revision of this edit only; these strategies wait for growth again."""
    before = state.total
    state.touched, state.unchanged_prefix = None, before
    make(state, edit, state.revisions + 1, state.step)
    _rearm(state, strategies)
    unbound = invalid_thinking(state)
    places = [place for place in (state.touched, state.requested) if place is not None]
    state.requested = min(places, default=None)
    state.ending = ending_of(state)
    return numbered(state, trigger, (edit, unbound) if unbound else (edit,), before)


def _rearm(state: State, strategies: set[str]) -> None:
    """Make strategies wait for growth again, so that they do not redo what people just changed."""
    room = state.window - state.policy.kept_free(state.window)
    for index, step in enumerate(state.policy.steps):
        if step.strategy in strategies and "rearm" in state.marks[index]:
            own = getattr(step.parameters, "budget", 0)
            used = state.total if own else state.billed
            rearm = used + int(step.parameters.rearm * (own or room))
            state.marks[index] = {**state.marks[index], "rearm": rearm}
            state.waiting[index] = None
