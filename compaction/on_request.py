"""What people ask of a fold: a revision taken back, a compaction now."""

from __future__ import annotations

from compaction.edits import CannotCompact, Edit, Revision, Trigger
from compaction.fold import view_of
from compaction.objections import objection
from compaction.recitation.layers import ending_of
from compaction.restore import taken_back
from compaction.state import State, make, numbered
from compaction.strategies.compact import Compact, targets_of
from compaction.summaries.spans import form_for, span_of, summary_edit

LEAST_SUMMARY = 100
"""Tokens below which a summary says nothing (ours)."""


def undo(state: State, number: int) -> Revision:
    """Take a revision back, as a revision of its own. Raises CannotUndo and changes nothing."""
    edit = taken_back(state, number)
    return _made(state, "undo", edit, {one.strategy for one in state.made[number - 1].edits})


def compact_now(
    state: State, instructions: str = "", until: int | None = None, *, done: bool = False
) -> Revision | None:
    """Compact by request all that may leave, before position `until` at most; `done`: as a task is.

    None while the summary is being written: it is in `state.wanted` then, and to ask again with
    `end_of` that span asks for the same. Parameters are those of the policy's own compaction, or
    the defaults. Raises CannotCompact and changes nothing.
    """
    steps = [step.parameters for step in state.policy.steps if step.strategy == "compact"]
    parameters = steps[0] if steps else Compact()
    view = view_of(state, None, until)
    targets, kept = targets_of(view, parameters)
    gone = sum(block.tokens for block in targets)
    budget = min(parameters.summary_tokens, gone // 2)
    if budget < LEAST_SUMMARY:
        raise CannotCompact(f"Only {gone} tokens could go; that is no more than a summary takes.")
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
    """A revision of this edit alone; these strategies wait anew."""
    before = state.total
    state.touched, state.unchanged_prefix = None, before
    make(state, edit, state.revisions + 1, state.step)
    _rearm(state, strategies)
    state.ending = ending_of(state)
    return numbered(state, trigger, (edit,), before)


def _rearm(state: State, strategies: set[str]) -> None:
    """Let strategies that wait for growth wait anew: what people just did must not be redone."""
    room = state.window - state.policy.kept_free(state.window)
    for index, step in enumerate(state.policy.steps):
        if step.strategy in strategies and "rearm" in state.marks[index]:
            own = getattr(step.parameters, "budget", 0)
            used = state.total if own else state.billed
            rearm = used + int(step.parameters.rearm * (own or room))
            state.marks[index] = {**state.marks[index], "rearm": rearm}
            state.waiting[index] = None
