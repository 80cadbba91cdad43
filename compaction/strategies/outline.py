"""Outline: a big file enters the context as what it declares, and is read in parts from there."""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.context import Block
from compaction.edits import Edit
from compaction.files.shown import Shown
from compaction.files.sights import sight
from compaction.plan import FileText, Mark, Proposal, View
from compaction.stubs import reference, stand_in


@dataclass(frozen=True, slots=True)
class Outline:
    """Which readings become an outline; `help` says what each value does.

    3,000 lines: CodeGenius. 3 steps are ours: only the end of the prompt is written to the cache
    again; so is the least that is saved.
    """

    lines: int = field(
        default=3_000,
        metadata={
            "min": 10,
            "max": 1_000_000,
            "help": "Readings of more lines than this become an outline.",
        },
    )
    late: int = field(
        default=3,
        metadata={
            "min": 0,
            "max": 1_000,
            "help": "Steps after its arrival in which a text may still give way to an outline "
            "that was not ready.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that must be saved at least, or the text enters whole.",
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"help": "Tools whose readings are left alone."}
    )


MARK: Mark = {"seen": 0}
"""How many arrivals are settled: none of them waits for an outline."""


def outline(view: View, parameters: Outline) -> Proposal:
    """Replace readings of big files by their outlines, at arrival or as soon as one is ready.

    Until then the text stands and the outline is wanted. A text that the model has been shown is
    replaced only while it is young, and not while it is hot. Source: CodeGenius.
    """
    edits: list[Edit] = []
    wanted: list[FileText] = []
    settled = seen = view.mark["seen"]
    for place in view.arrivals[seen:]:
        seen += 1
        block = view.originals[place]
        found = _due(view, block, parameters)
        if found is None or block.file is None:
            waits = False
        else:
            file = FileText(block.file.path, block.text, block.sha)
            text = view.means.outline(file)
            waits = text is None and block.born + parameters.late > view.step
            if text is None:
                wanted.append(file)
            elif (edit := _edit(view, block, found, text, parameters)) is not None:
                allowed = _fresh(view, block) or view.guard.may_replace(block)
                waits = not allowed and block.born + parameters.late > view.step
                edits.extend([edit] if allowed else [])
        if not waits and settled == seen - 1:
            settled = seen
    reason = f"{len(edits)} files over {parameters.lines} lines"
    return Proposal(tuple(edits), {"seen": settled}, "entry", reason, tuple(wanted))


def _fresh(view: View, block: Block) -> bool:
    return block.born >= view.step


def _due(view: View, block: Block, parameters: Outline) -> Shown | None:
    """The lines that a block shows, where it is a reading that should be an outline."""
    if block.type != "tool_result" or block.tool in parameters.exclude:
        return None
    if block.text.count("\n") < parameters.lines:
        return None
    now = view.standing.get(block.position)
    if now is None or now.id != block.id or not view.guard.may_enter_as(block):
        return None
    if block.born + parameters.late < view.step:
        return None
    found = sight(block, view.guard.groups.uses)
    return found if found is not None and len(found.lines) > parameters.lines else None


def _edit(
    view: View, block: Block, found: Shown, outlined: str, parameters: Outline
) -> Edit | None:
    assert block.file is not None
    head = (
        f"[outline of {block.file.path} lines {found.first}-{found.last}, {block.chars} chars"
        f" | read the lines you need, or all of it by ref {reference(block)}]"
    )
    text = f"{found.head}{head}\n{outlined}"
    tokens = view.means.count(text)
    if block.tokens - tokens < parameters.minimum:
        return None
    return Edit(
        "outline", (block.id,), stand_in(block, text, tokens, "outline"), f"{block.tokens} tokens"
    )
