"""A span of history on its way into a summary: what it holds, and the edit that replaces it."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context import Block
from compaction.edits import Edit
from compaction.plan import Span, SummaryForm, View
from compaction.stubs import digest
from compaction.summaries import images
from compaction.summaries.extract import extractive
from compaction.summaries.instructions import given_in
from compaction.summaries.summary import file_operations, problems

OVERRUN = 1.25
"""How far a summary may exceed its budget before it is refused (ours)."""


def kept_messages(blocks: Sequence[Block], budget: int) -> list[Block]:
    """The newest user messages that fit into a budget of tokens, in context order."""
    kept: list[Block] = []
    for block in reversed(blocks):
        if block.kind == "user" and block.role == "user" and block.type == "text":
            budget -= block.tokens
            if budget < 0:
                break
            kept.append(block)
    return kept[::-1]


def is_summary(block: Block) -> bool:
    """Whether a block is a summary that a strategy made."""
    return block.kind == "summary" and block.replaces is not None


def form_for(form: SummaryForm, done: bool) -> SummaryForm:
    """The form of a summary, by what is wished and whether the task is over (Dakou)."""
    return "done" if done else form


def span_of(
    view: View,
    form: SummaryForm,
    targets: Sequence[Block],
    kept: Sequence[Block],
    budget: int,
    instructions: str = "",
    board: str = "",
) -> Span:
    """What a summarizer is given for these targets; an earlier summary among them comes first.

    `instructions` are the policy's; those that the context itself gives are added to them.
    """
    earlier = [block.text for block in targets if is_summary(block)]
    blocks = tuple(block for block in targets if not is_summary(block))
    return Span(
        form=form,
        blocks=blocks,
        originals=tuple(view.originals[block.position] for block in blocks),
        previous="\n".join(earlier) if earlier else None,
        budget=budget,
        kept=tuple(kept),
        instructions="\n\n".join(filter(None, (instructions, *given_in(view.standing.values())))),
        board=board,
    )


def summary_edit(view: View, strategy: str, span: Span, targets: Sequence[Block]) -> Edit | None:
    """The edit that puts a summary in place of its targets; None while it is being written.

    A summary that breaks its form, overruns its budget or is no shorter than the span is never
    used: the extractive one takes its place. Gemini CLI refuses longer ones, too.
    """
    text = view.means.summarize(span)
    if text is None:
        return None
    gone = sum(block.tokens for block in targets)
    tokens = view.means.count(text)
    if problems(text, span.form) or tokens > OVERRUN * span.budget or tokens >= gone:
        text = extractive(span)
        tokens = view.means.count(text)
    first = targets[0]
    known = {block.id for block in span.originals}
    known.update(ref for block in targets for ref in block.refs)
    named_by = digest(text)
    told = [*(ref for _, _, ref in file_operations(text)), *images.references(text)]
    named = [ref.rsplit("@", 1)[0] for ref in told]
    replacement = Block(
        # The text is part of the name: after an undo the same span may get another summary.
        id=f"{strategy}:{view.originals[first.position].id}-{targets[-1].position}:{named_by[:8]}",
        position=first.position,
        message=first.message,
        born=view.step,
        turn=first.turn,
        role="user",
        type="text",
        kind="summary",
        tokens=tokens,
        chars=len(text),
        sha=named_by,
        text=text,
        replaces=first.id,
        refs=tuple(dict.fromkeys(name for name in named if name in known)),
    )
    ids = tuple(block.id for block in targets)
    return Edit(strategy, ids, replacement, f"{len(ids)} blocks, {gone} → {tokens} tokens")
