"""Shard: a tool result that is too long for one piece enters in parts, each read for itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from compaction.context import Block
from compaction.edits import Edit
from compaction.files.reading import reads
from compaction.hints import one_line
from compaction.plan import Mark, Proposal, View
from compaction.shards import READ_ON, cut, written
from compaction.stubs import key_arguments, stand_in

_MEDIA = re.compile(r"^\[(?:image|document)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which results enter in parts, and in how many; `help` says what each value does.

    18,000 tokens and 8 parts: Dakou.
    """

    over: int = field(
        default=18_000,
        metadata={
            "min": 100,
            "max": 1_000_000,
            "help": "Tokens above which a result is split, and that a part may take.",
        },
    )
    parts: int = field(
        default=8,
        metadata={"min": 2, "max": 100, "help": "Parts at most; what is beyond them is left out."},
    )
    exclude: tuple[str, ...] = field(
        default=(),
        metadata={"help": "Tools, and programs of shell tools, whose results are left alone."},
    )


MARK: Mark = {"seen": 0}
"""How many arrivals were looked at."""


def shard(view: View, parameters: Shard) -> Proposal:
    """Put one block with parts in place of a result that is too long, at its arrival only.

    The context keeps one block in its place; it becomes several messages where it is rendered.
    Source: Dakou.
    """
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        edit = _edit(view, view.originals[place], parameters)
        if edit is not None:
            edits.append(edit)
    reason = f"{len(edits)} results over {parameters.over} tokens"
    return Proposal(tuple(edits), {"seen": len(view.arrivals)}, "entry", reason)


def _edit(view: View, block: Block, parameters: Shard) -> Edit | None:
    if block.type != "tool_result" or block.tokens <= parameters.over:
        return None
    now = view.standing.get(block.position)
    if now is None or now.id != block.id or not view.guard.may_enter_as(block):
        return None
    use = view.guard.groups.uses.get(block.tool_call) if block.tool_call is not None else None
    if block.tool in parameters.exclude or reads(use, parameters.exclude):
        return None
    if _MEDIA.search(block.text):
        return None  # a picture cannot be cut, and parts are text
    count = view.means.count
    parts, left = cut(block.text, parameters.over, parameters.parts, count)
    if len(parts) < 2:
        return None
    about = one_line(f"{block.tool or 'result'} {key_arguments(use)}".strip(), 200)
    text = written(block, about, parts, left)
    tokens = count(text) + (len(parts) - 1) * count(READ_ON)
    made = stand_in(block, text, tokens, "shard")
    return Edit("shard", (block.id,), made, f"{block.tokens} tokens in {len(parts)} parts")
