"""Externalise at entry: a big tool result goes to the store at once, its ends and figures stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.context import Block
from compaction.cut import cut
from compaction.edits import Edit
from compaction.files.reading import reads
from compaction.plan import Mark, Proposal, View
from compaction.stubs import key_arguments, reference, stand_in


@dataclass(frozen=True, slots=True)
class Externalise:
    """Which results are cut at their arrival, and what stays; `help` says what each value does.

    100 rows and failures that enter whole: MaybeAi, who names no size; the other numbers are ours.
    """

    over: int = field(
        default=2_000,
        metadata={
            "min": 50,
            "max": 1_000_000,
            "help": "Tokens above which a result is cut to an excerpt.",
        },
    )
    rows: int = field(
        default=100,
        metadata={"min": 1, "max": 100_000, "help": "Rows of a table that stay at most."},
    )
    head: int = field(
        default=2_000,
        metadata={
            "min": 0,
            "max": 1_000_000,
            "help": "Characters that stay at the beginning of a text; a table may take head and "
            "tail together.",
        },
    )
    tail: int = field(
        default=1_000,
        metadata={
            "min": 0,
            "max": 1_000_000,
            "help": "Characters that stay at the end of a text.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that must be saved at least, or the result enters whole.",
        },
    )
    exclude: tuple[str, ...] = field(
        default=(),
        metadata={"help": "Tools, and programs of shell tools, whose results are left alone."},
    )
    keep_failures: bool = field(
        default=True, metadata={"help": "Whether results of calls that failed enter whole."}
    )


MARK: Mark = {"seen": 0}
"""How many arrivals were looked at."""


def externalise(view: View, parameters: Externalise) -> Proposal:
    """Replace tool results that are too big by an excerpt with a reference, at their arrival only.

    Source: MaybeAi, whose results over a limit enter the context as a file's name and a summary.
    """
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        edit = _edit(view, view.originals[place], parameters)
        if edit is not None:
            edits.append(edit)
    mark = {"seen": len(view.arrivals)}
    reason = f"{len(edits)} results over {parameters.over} tokens"
    return Proposal(tuple(edits), mark, "entry", reason)


def _edit(view: View, block: Block, parameters: Externalise) -> Edit | None:
    if block.type != "tool_result" or block.tokens <= parameters.over:
        return None
    now = view.standing.get(block.position)
    if now is None or now.id != block.id:
        return None
    if not view.guard.may_enter_as(block) or (block.error and parameters.keep_failures):
        return None
    use = view.guard.groups.uses.get(block.tool_call) if block.tool_call is not None else None
    if block.tool in parameters.exclude or reads(use, parameters.exclude):
        return None
    file = block.file or (use.file if use is not None else None)
    path = file.path if file is not None else None
    shown = cut(block.text, path, parameters.rows, parameters.head, parameters.tail)
    about = f"{block.tool or 'result'} {key_arguments(use)}".strip()
    told = f"[externalised: {about} | {shown.figures} | ref {reference(block)}]"
    text = "\n".join(filter(None, [told, shown.text]))
    tokens = view.means.count(text)
    if block.tokens - tokens < parameters.minimum:
        return None
    stub = stand_in(block, text, tokens, "externalise")
    return Edit("externalise", (block.id,), stub, f"{block.tokens} tokens")
