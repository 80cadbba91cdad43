"""Compaction: a span of history becomes one structured summary before the window is full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from compaction.boundaries import history, is_worth, largest
from compaction.context import Block
from compaction.edits import Trigger
from compaction.plan import Mark, Proposal, View
from compaction.summaries.spans import form_for, kept_messages, span_of, summary_edit
from compaction.topic import Topic


@dataclass(frozen=True, slots=True)
class Compact:
    """When history is summarised, and what stays out of it; `help` says what each value does.

    Trigger 0.70 and summaries of 2,000 to 3,000 tokens: CodeGenius; 20,000 tokens of user
    messages: Codex CLI; least progress: OpenHands SDK; `rearm`: ours, where Shannon counts
    messages and minutes; instructions: Claude Code, CodeGenius; keeping failures: MaybeAi.
    """

    trigger: float = field(
        default=0.70,
        metadata={
            "min": 0.05,
            "max": 0.95,
            "help": "Share of the window less the reserve at which history is summarised.",
        },
    )
    summary_tokens: int = field(
        default=3_000,
        metadata={"min": 200, "max": 50_000, "help": "Tokens that the summary may take at most."},
    )
    user_tokens: int = field(
        default=20_000,
        metadata={
            "min": 0,
            "max": 1_000_000,
            "help": "Tokens of user messages that stay as they are, the newest first.",
        },
    )
    progress: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "help": "Share of the prompt that a summary must win at least, or none is made.",
        },
    )
    rearm: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "help": "Share of the window that the prompt must grow by before another try.",
        },
    )
    instructions: str = field(
        default="", metadata={"help": "Words that are passed on to whoever writes the summary."}
    )
    keep_failures: bool = field(
        default=False,
        metadata={"help": "Whether what failed stays word for word until the same thing succeeds."},
    )
    form: Literal["nine", "progress"] = field(
        default="nine",
        metadata={"help": "Sections of a summary while the task goes on."},
    )
    on_new_topic: bool = field(
        default=False,
        metadata={"help": "Whether history is also summarised where a person begins a new topic."},
    )
    on_task_done: bool = field(
        default=False,
        metadata={
            "help": "Whether history is also summarised where the todo list was worked off, or the "
            "session's outcome is told."
        },
    )
    least_cold: int = field(
        default=3_000,
        metadata={
            "min": 0,
            "max": 10_000_000,
            "help": "Tokens of history above which that is done once the provider's cache is cold.",
        },
    )
    least_warm: int = field(
        default=30_000,
        metadata={
            "min": 0,
            "max": 10_000_000,
            "help": "Tokens of history above which that is done while the cache is still warm.",
        },
    )


MARK: Mark = {"rearm": 0, "due": 0}
"""Below how many tokens of prompt nothing is tried again; the turn whose boundary is still due, and
that of which a judge is thinking (`asked`)."""


def compact(view: View, parameters: Compact) -> Proposal:
    """Replace everything before the hot cache by a summary, pins and user messages apart.

    Does nothing below the trigger, where the fixed part alone would stay above it, where too
    little would be won, or before the prompt has grown again. Below the trigger a new topic or a
    task that is done may be the cause, where history is long enough and the summary saves more
    than writing the cache again costs. An earlier summary is taken up into the new one. CodeGenius'
    rules with Dakou's hot cache; when not to start is ours, but for the least progress
    (docs/sources.md).
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
    """What ended at this call, or at an earlier one of this turn while the summary is written."""
    due = view.mark.get("due", 0)
    if due and abs(due) == view.turn:
        return "new_topic" if due > 0 else "task_done"
    if view.boundary == "new_topic" and parameters.on_new_topic:
        return "new_topic"
    if view.boundary == "task_done" and parameters.on_task_done:
        return "task_done"
    return None


def _to_judge(view: View, parameters: Compact) -> Topic | None:
    """What a judge is asked: only of a message that no model has answered (or while he thinks of
    it), where history is long enough, and nothing is due."""
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
    """What a summary would replace, and the user messages among it that stay."""
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
        return Proposal((), later, skipped=f"only {gone} tokens could go")
    if (
        cause != "window"
        and not _waits(view)
        and not is_worth(view, targets[0].position, gone - parameters.summary_tokens)
    ):
        skipped = f"{_SAID[cause]}, but to write the cache again costs more than is won"
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
