"""Compaction: a span of history becomes one structured summary before the window is full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from compaction.plan import Mark, Proposal, View
from compaction.spans import kept_messages, span_of, summary_edit


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


MARK: Mark = {"rearm": 0}
"""Below how many tokens of prompt nothing is tried again."""


def compact(view: View, parameters: Compact) -> Proposal:
    """Replace everything before the hot cache by a summary, pins and user messages apart.

    Does nothing below the trigger, where the fixed part alone would stay above it, where too
    little would be won, or before the prompt has grown again. An earlier summary is taken up into
    the new one. CodeGenius' rule with Dakou's hot cache; when not to start is ours, but for the
    least progress (docs/sources.md).
    """
    limit = int(parameters.trigger * view.room)
    if view.used < limit or view.used < view.mark["rearm"]:
        return Proposal((), view.mark)
    later: Mark = {"rearm": view.used + int(parameters.rearm * view.room)}
    hot = view.guard.hot
    span = [b for p, b in view.standing.items() if p < hot and view.guard.may_remove(b)]
    kept = kept_messages(span, parameters.user_tokens)
    stay = {block.position for block in kept}
    if parameters.keep_failures:
        stay |= view.guard.groups.unmended(view.originals)
    targets = [block for block in span if block.position not in stay]
    gone = view.billed(sum(block.tokens for block in targets))
    floor = view.used - gone + parameters.summary_tokens
    if floor >= limit:
        skipped = f"what must stay takes {floor} tokens, the trigger is at {limit}"
        return Proposal((), later, skipped=skipped)
    if gone - parameters.summary_tokens < parameters.progress * view.used:
        return Proposal((), later, skipped=f"only {gone} tokens could go")
    budget, instructions = parameters.summary_tokens, parameters.instructions
    wish = span_of(view, parameters.form, targets, kept, budget, instructions)
    edit = summary_edit(view, "compact", wish, targets)
    if edit is None:
        return Proposal((), view.mark, wanted=(wish,))
    assert edit.replacement is not None
    after = view.used - gone + view.billed(edit.replacement.tokens)
    mark: Mark = {"rearm": after + int(parameters.rearm * view.room)}
    reason = f"{view.used} of {view.room} tokens used, trigger at {limit}"
    return Proposal((edit,), mark, "window", reason)
