"""Outline: show a large file as its declarations, to be read in parts from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.edits import Edit, amount
from compaction.context.stubs import reference, stand_in
from compaction.proposals.plan import FileText, Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark, Strategy
from compaction.seen.shown import Shown
from compaction.seen.sights import sight


@dataclass(frozen=True, slots=True)
class Outline:
    """Which readings become an outline.

    3,000 lines: CodeGenius. The 3 steps are our choice, so that only the end of the prompt is
    written to the cache again; so are the minimum savings.
    """

    lines: int = setting(
        3_000,
        "Outline files longer than",
        "Show a longer file as an outline of its declarations.",
        "Files",
        "lines",
        between=(10, 1_000_000),
        drawn=range(10, 61),
    )
    late: int = setting(
        3,
        "Wait for an outline up to",
        "How long to wait for an outline, in steps.",
        "Files",
        "steps",
        between=(0, 1_000),
        advanced=True,
        zero="not at all",
    )
    minimum: int = setting(
        50,
        "Outline if it saves at least",
        "Keep the full text if an outline would save fewer tokens than this.",
        "Files",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
        drawn=range(1, 61),
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Never outline these tools",
        "Tools whose readings always stay in full.",
        "Files",
        advanced=True,
    )


MARK: Mark = {"seen": 0}
"""The number of arrivals that no longer wait for an outline."""


def outline(view: View, parameters: Outline) -> Proposal:
    """Replace readings of large files by their outlines, on arrival or once they are ready.

    Until then the text stays and the outline is wanted. A text that the model has seen is replaced
    only while it is recent, and not while it is hot. Source: CodeGenius.
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
                allowed = _has_just_arrived(view, block) or view.guard.may_replace(block)
                waits = not allowed and block.born + parameters.late > view.step
                edits.extend([edit] if allowed else [])
        if not waits and settled == seen - 1:
            settled = seen
    reason = f"{amount(len(edits), 'file')} over {parameters.lines} lines"
    return Proposal(tuple(edits), {"seen": settled}, "entry", reason, tuple(wanted))


def _has_just_arrived(view: View, block: Block) -> bool:
    return block.born >= view.step


def _due(view: View, block: Block, parameters: Outline) -> Shown | None:
    """Return the lines of a block if it is a reading that should become an outline."""
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


ORDINARY = 300
"""Lines below which most files would be read twice: as an outline, then in parts (our choice)."""


def _remarks(_place: Place, given: Outline) -> Iterator[Remark]:
    if given.lines < ORDINARY:
        text = (
            f"Many files have {given.lines} lines: the agent gets an outline first and then reads "
            f"the parts, two calls instead of one. Set it to {ORDINARY:,} or more "
            f"(CodeGenius: 3,000)."
        )
        yield Remark("lines", text, "warning")


STRATEGY = Strategy(
    name="outline",
    order=20,
    title="Outline",
    does="Shows a large file as an outline of its declarations, to be read in parts.",
    event="entry",
    propose=outline,
    parameters=Outline,
    mark=MARK,
    docs="outline",
    remarks=_remarks,
)
