"""Offload: tool inputs and outputs leave the context in batches, stubs stay."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from compaction.context import Block
from compaction.edits import Edit
from compaction.files.reading import reads
from compaction.files.sights import STUB
from compaction.plan import Mark, Proposal, View
from compaction.stubs import entered_short, input_stub, result_stub, stand_in


@dataclass(frozen=True, slots=True)
class Offload:
    """When tool input and output leaves the context; `help` says what each value does.

    Age 5, batch 5 and that calls leave too: CodeGenius; the least that is saved is about what a
    stub takes (ours); `exclude`: Anthropic's context editing; `only` and failures: MaybeAi.
    """

    age: int = field(
        default=5,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "How many of the newest steps or turns keep their inputs and outputs.",
        },
    )
    batch: int = field(
        default=5,
        metadata={
            "min": 1,
            "max": 10_000,
            "help": "How many older steps or turns gather before they leave together, so that the "
            "cached prefix is rewritten once for all of them.",
        },
    )
    unit: Literal["steps", "turns"] = field(
        default="steps",
        metadata={
            "help": "What age and batch count: steps are model calls, turns are human messages."
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that a stub must save at least, or the text stays.",
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"help": "Tools whose inputs and outputs are left alone."}
    )
    only: tuple[str, ...] = field(
        default=(),
        metadata={"help": "Tools and programs of which alone something leaves; empty for all."},
    )
    inputs: bool = field(
        default=True, metadata={"help": "Whether inputs leave too, and not only outputs."}
    )
    keep_failures: bool = field(
        default=True,
        metadata={"help": "Whether failed calls stay until the same thing succeeds."},
    )


MARK: Mark = {"seen": 0, "ripe": -1, "mended": 0}
"""How many arrivals and mended failures were looked at, and up to which step or turn."""


def offload(view: View, parameters: Offload) -> Proposal:
    """Replace tool inputs and outputs that are old enough by stubs, one edit each.

    Looks at every arrival once, when it ripens, and again at failures that were mended since.
    Source: CodeGenius; what batches save is in docs/sources.md, Worked cache example.
    """
    by_turn = parameters.unit == "turns"
    ripe = (view.turn if by_turn else view.step) - parameters.age
    last = view.mark["ripe"]
    if last < 0:
        # The opening is born at step 1, before any tool ran: batches count from there.
        last = 0 if by_turn else 1
    if ripe - last < parameters.batch:
        return Proposal((), view.mark)
    edits: list[Edit | None] = []
    seen = view.mark["seen"]
    while seen < len(view.arrivals):
        block = view.originals[view.arrivals[seen]]
        if (block.turn if by_turn else block.born) > ripe or block.position >= view.guard.hot:
            break  # what is hot yet gets its turn later
        seen += 1
        edits.extend(_edit(view, one, parameters, ripe) for one in _with_held(view, block))
    mended = view.guard.groups.mended
    for position in mended[view.mark["mended"] :]:
        block = view.originals[position]
        if (block.turn if by_turn else block.born) <= ripe:
            edits.append(_edit(view, block, parameters, ripe))
    made = {edit.targets: edit for edit in edits if edit is not None}
    mark = {"seen": seen, "ripe": ripe, "mended": len(mended)}
    unit = "turn" if by_turn else "step"
    blocks = f"{len(made)} block{'' if len(made) == 1 else 's'}"
    return Proposal(tuple(made.values()), mark, "batch", f"{blocks} from {unit} {ripe} or earlier")


def _with_held(view: View, block: Block) -> list[Block]:
    """A block, and where it is a note on a file's text elsewhere, what was held for its sake."""
    now = view.standing.get(block.position)
    if now is None or not now.id.startswith(STUB):
        return [block]
    held = view.sights.rested_on(now, view.originals, view.guard.groups.uses)
    return [block, *(view.originals[place] for place in held)]


def _is_held(view: View, block: Block, parameters: Offload, ripe: int) -> bool:
    """Whether a note that is not ripe itself, is new or hot, leaves its text to this block."""
    by_turn = parameters.unit == "turns"
    for note in view.sights.resting(block, view.standing):
        new = note.born >= view.step or note.position >= view.guard.hot
        if new or (note.turn if by_turn else note.born) > ripe:
            return True
    return False


def _is_whole(now: Block, block: Block) -> bool:
    """Whether an original stands, or what entered in its place and may be as long as one."""
    return now.id == block.id or entered_short(now)


def _edit(view: View, block: Block, parameters: Offload, ripe: int) -> Edit | None:
    now = view.standing.get(block.position)
    if now is None or now.tokens <= parameters.minimum or not _is_whole(now, block):
        return None
    if block.type not in ("tool_use", "tool_result") or not view.guard.may_replace(block):
        return None
    if block.type == "tool_use" and not parameters.inputs:
        return None
    groups = view.guard.groups
    use = groups.uses.get(block.tool_call) if block.tool_call is not None else None
    tool = block.tool or (use.tool if use is not None else None)
    if tool in parameters.exclude or (parameters.only and not reads(use, parameters.only)):
        return None
    if _is_held(view, block, parameters, ripe):
        return None
    if parameters.keep_failures and block.position in groups.open_failures:
        return None
    text = input_stub(block) if block.type == "tool_use" else result_stub(block, use)
    tokens = view.means.count(text)
    if now.tokens - tokens < parameters.minimum:
        return None
    replacement = stand_in(block, text, tokens, "offload", now=now.id)
    return Edit(
        "offload", (now.id,), replacement, f"{block.tokens} tokens, here since step {block.born}"
    )
