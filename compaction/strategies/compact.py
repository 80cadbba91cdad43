"""Compaction: summarize history before the window is full."""

from __future__ import annotations

from compaction.context.blocks import Block
from compaction.context.edits import Trigger
from compaction.proposals.boundaries import history, is_worth, largest
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.strategy import Strategy
from compaction.strategies.compact_settings import Compact, compact_remarks
from compaction.summaries.spans import form_for, kept_messages, span_of, summary_edit
from compaction.topic.topic import Topic

MARK: Mark = {"rearm": 0, "due": 0}
"""The prompt tokens below which nothing is tried again; the turn whose boundary is still due, and
the turn that a judge is working on (`asked`)."""


def compact(view: View, parameters: Compact) -> Proposal:
    """Replace everything before the hot cache by a summary, except pins and user messages.

    Does nothing below the trigger, if the fixed part alone exceeds it, if too little would be
    freed, or before the prompt has grown again. Below the trigger, a new topic or a finished task
    can cause it, if history is long enough and the summary saves more than rewriting the cache
    costs. An earlier summary is included in the new one. CodeGenius' rules with Dakou's hot cache;
    the rules for not starting are ours, except the minimum progress (docs/sources.md).
    """
    limit = int(parameters.trigger * view.room)
    if view.used >= max(limit, view.mark["rearm"]):
        return _compact(view, parameters, "window")
    over = _over(view, parameters)
    judge, topic = view.means.judge, _to_judge(view, parameters)
    if judge is not None and topic is not None:
        new = judge(topic)
        if new is None:
            return Proposal((), {**_mark(view), "asked": view.turn}, wanted=(topic,))
        over = _judged(view, parameters, new)
        return Proposal((), _mark(view)) if over is None else _compact(view, parameters, over)
    if over is not None:
        least = parameters.least_cold if view.cold else parameters.least_warm
        if not _waits(view) and (tokens := history(view)) <= least:
            skipped = f"{_SAID[over]}, but history is only {tokens} tokens"
            return Proposal((), _mark(view), skipped=skipped)
        return _compact(view, parameters, over)
    return Proposal((), _mark(view))


_SAID: dict[Trigger, str] = {"new_topic": "a new topic begins", "task_done": "a task is done"}


def _over(view: View, parameters: Compact) -> Trigger | None:
    """Return what ended at this call, or at an earlier call of this turn with a pending summary."""
    due = view.mark.get("due", 0)
    if due and abs(due) == view.turn:
        return "new_topic" if due > 0 else "task_done"
    if view.boundary == "new_topic" and parameters.on_new_topic:
        return "new_topic"
    if view.boundary == "task_done" and parameters.on_task_done:
        return "task_done"
    return None


def _to_judge(view: View, parameters: Compact) -> Topic | None:
    """Return the topic to judge, if any.

    Asks only about a message that no model has answered (or with a pending judgment), if history is
    long enough and nothing else is due.
    """
    if not parameters.on_new_topic or abs(view.mark.get("due", 0)) == view.turn:
        return None
    if view.mark.get("asked", 0) != view.turn:
        if not view.rounds.unanswered(view.step):
            return None
        least = parameters.least_cold if view.cold else parameters.least_warm
        if history(view) <= least:
            return None
    return view.rounds.topic


def _judged(view: View, parameters: Compact, new: bool) -> Trigger | None:
    if new:
        return "new_topic"
    return "task_done" if parameters.on_task_done and view.rounds.finished else None


def _waits(view: View) -> bool:
    return view.guard.limit is not None


def _mark(view: View, rearm: int | None = None, due: int = 0) -> Mark:
    return {"rearm": view.mark["rearm"] if rearm is None else rearm, "due": due}


def targets_of(view: View, parameters: Compact) -> tuple[list[Block], list[Block]]:
    """Return the blocks that a summary would replace, and the user messages among them to keep."""
    hot = view.guard.hot
    span = [b for p, b in view.standing.items() if p < hot and view.guard.may_remove(b)]
    kept = kept_messages(span, parameters.user_tokens)
    stay = {block.position for block in kept}
    if parameters.keep_failures:
        stay |= view.guard.groups.unmended(view.originals)
    return [block for block in span if block.position not in stay], kept


def _compact(view: View, parameters: Compact, cause: Trigger) -> Proposal:
    limit, growth = int(parameters.trigger * view.room), int(parameters.rearm * view.room)
    later = _mark(view, view.used + growth) if cause == "window" else _mark(view)
    targets, kept = targets_of(view, parameters)
    gone = view.billed(sum(block.tokens for block in targets))
    floor = view.used - gone + parameters.summary_tokens
    if cause == "window" and floor >= limit:
        skipped = f"what must stay takes {floor} tokens, the trigger is at {limit}"
        return Proposal((), later, skipped=f"{skipped} ({largest(view)})")
    if gone - parameters.summary_tokens < parameters.progress * view.used:
        return Proposal((), later, skipped=f"only {gone} tokens could be removed")
    if (
        cause != "window"
        and not _waits(view)
        and not is_worth(view, targets[0].position, gone - parameters.summary_tokens)
    ):
        skipped = f"{_SAID[cause]}, but rewriting the cache costs more than it saves"
        return Proposal((), later, skipped=skipped)
    form = form_for(parameters.form, done=cause == "task_done")
    budget, instructions = parameters.summary_tokens, parameters.instructions
    wish = span_of(view, form, targets, kept, budget, instructions)
    edit = summary_edit(view, "compact", wish, targets)
    if edit is None:
        due = {"new_topic": view.turn, "task_done": -view.turn}.get(cause, 0)
        return Proposal((), _mark(view, due=due), wanted=(wish,))
    assert edit.replacement is not None
    after = view.used - gone + view.billed(edit.replacement.tokens)
    why = f"trigger at {limit}" if cause == "window" else _SAID[cause]
    reason = f"{view.used} of {view.room} tokens used, {why}"
    return Proposal((edit,), _mark(view, after + growth), cause, reason)


STRATEGY = Strategy(
    name="compact",
    order=80,
    title="Compaction",
    does="Summarizes history before the window is full.",
    event="compaction",
    propose=compact,
    parameters=Compact,
    mark=MARK,
    docs="compaction",
    remarks=compact_remarks,
    joins=True,
)
