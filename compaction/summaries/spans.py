"""Build the span to summarize, and the edit that replaces it."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.context.blocks import Block
from compaction.context.edits import Edit
from compaction.context.stubs import digest
from compaction.proposals.plan import Span, SummaryForm, View
from compaction.summaries import images
from compaction.summaries.extract import extractive
from compaction.summaries.model.instructions import given_in
from compaction.summaries.summary import board_apart, file_operations, problems, with_board

OVERRUN = 1.25
"""How far a summary may exceed its budget before it is refused (our choice)."""


def kept_messages(blocks: Sequence[Block], budget: int) -> list[Block]:
    """Return the newest user messages that fit into a budget of tokens, in context order.

    Their pictures count as messages: no summary can say what they show.
    """
    kept: list[Block] = []
    for block in reversed(blocks):
        said = block.kind == "user" and block.type == "text"
        if block.role == "user" and (said or block.type == "image"):
            budget -= block.tokens
            if budget < 0:
                break
            kept.append(block)
    return kept[::-1]


def is_summary(block: Block) -> bool:
    """Return whether a strategy made this block as a summary."""
    return block.kind == "summary" and block.replaces is not None


def form_for(form: SummaryForm, done: bool) -> SummaryForm:
    """Choose the form of a summary, by preference and by whether the task is done (Dakou)."""
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
    """Build a summarizer's input for these targets; an earlier summary among them comes first.

    `instructions` are the policy's; those in the context itself are added.
    """
    earlier = [board_apart(block.text)[0] for block in targets if is_summary(block)]
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
    """Return the edit that replaces the targets by a summary; None while it is being written.

    A summary that breaks its form, exceeds its budget or is not shorter than the span is never
    used: the extractive one replaces it. Gemini CLI also refuses longer ones. The board follows it,
    in at most half of the tokens that the summary frees (our choice).
    """
    text = view.means.summarize(span)
    if text is None:
        return None
    gone = sum(block.tokens for block in targets)
    tokens = view.means.count(text)
    if problems(text, span.form) or tokens > OVERRUN * span.budget or tokens >= gone:
        text = extractive(span)
        tokens = view.means.count(text)
    refs = [*(ref for _, _, ref in file_operations(text)), *images.references(text)]
    named = [ref.rsplit("@", 1)[0] for ref in refs]
    text = with_board(text, view.means.board((gone - tokens) // 2))
    tokens = view.means.count(text)
    first = targets[0]
    known = {block.id for block in span.originals}
    known.update(ref for block in targets for ref in block.refs)
    named_by = digest(text)
    replacement = Block(
        # The id depends on the text: after an undo the same span may get another summary.
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
