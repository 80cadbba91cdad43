"""Shard: split a very long tool result into parts, each sent as a message of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.edits import Edit, amount
from compaction.context.hints import one_line
from compaction.context.stubs import key_arguments, stand_in
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.shards import READ_ON, cut, written
from compaction.proposals.strategy import Place, Remark, Strategy
from compaction.seen.reading import reads

_MEDIA = re.compile(r"^\[(?:image|document)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which results are split, and into how many parts. 18,000 tokens and 8 parts: Dakou."""

    over: int = setting(
        18_000,
        "Split results larger than",
        "Larger results are split; also the maximum size of a part.",
        "Tool results",
        "tokens",
        between=(100, 1_000_000),
        tries=(5_000, 10_000, 18_000),
        drawn=range(100, 301),
    )
    parts: int = setting(
        8,
        "Split into at most",
        "Maximum number of parts; the rest is left out.",
        "Tool results",
        "parts",
        between=(2, 100),
        drawn=range(2, 10),
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Never split these tools",
        "Tools, and programs of shell tools, whose results stay whole.",
        "Tool results",
        advanced=True,
    )


MARK: Mark = {"seen": 0}
"""The number of arrivals processed."""


def shard(view: View, parameters: Shard) -> Proposal:
    """Replace a new result that is too long by a block with its parts.

    The context keeps one block; rendering turns it into several messages. Source: Dakou.
    """
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        edit = _edit(view, view.originals[place], parameters)
        if edit is not None:
            edits.append(edit)
    reason = f"{amount(len(edits), 'result')} over {parameters.over} tokens"
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
        return None  # an image cannot be split into text parts
    count = view.means.count
    parts, left = cut(block.text, parameters.over, parameters.parts, count)
    if len(parts) < 2:
        return None
    about = one_line(f"{block.tool or 'result'} {key_arguments(use)}".strip(), 200)
    text = written(block, about, parts, left)
    tokens = count(text) + (len(parts) - 1) * count(READ_ON)
    made = stand_in(block, text, tokens, "shard")
    return Edit("shard", (block.id,), made, f"{block.tokens} tokens in {len(parts)} parts")


def _remarks(place: Place, given: Shard) -> Iterator[Remark]:
    trigger = place.trigger()
    if trigger is not None and given.over >= trigger:
        text = (
            f"A single part can fill the context: {given.over:,} tokens are not below the trigger, "
            f"which is at {trigger:,} in a window of {place.window:,}. Set it to 18,000 or less "
            f"(Dakou)."
        )
        yield Remark("over", text, "warning")
    if any(one.name == "externalise" for one in place.before):
        text = (
            "Results long enough to be split are shortened to an excerpt first, so this rarely "
            "acts. Keep one of the two: shard shows everything, externalise costs less."
        )
        yield Remark("", text, "note")


STRATEGY = Strategy(
    name="shard",
    order=40,
    title="In parts",
    does="Splits a very long tool result into parts, each sent as a message of its own.",
    event="entry",
    propose=shard,
    parameters=Shard,
    mark=MARK,
    docs="shard",
    remarks=_remarks,
)
