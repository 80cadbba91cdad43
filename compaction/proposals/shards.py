"""Split a long result into parts, write them as one text, and split that for sending."""

from __future__ import annotations

import re

from compaction.context.blocks import Block
from compaction.context.stubs import reference
from compaction.proposals.plan import Count

READ_ON = "[This part is read. The next one, please.]"
"""The assistant's text between two parts."""

_FIRST = re.compile(r"\[part 1/(\d{1,3}) of [^\n]{0,400}\| ref ([^\s\]|]{1,300})\]\n")


def cut(text: str, size: int, most: int, count: Count) -> tuple[list[str], str]:
    """Split a text into at most `most` parts of at most `size` tokens, and return the rest.

    Cuts are at a line end if the second half of a part has one.
    """
    parts: list[str] = []
    place = 0
    step = max(len(text) * size // max(count(text), 1), 1)
    while place < len(text) and len(parts) < most:
        end = place + step
        while end - place > 1 and (tokens := count(text[place:end])) > size:
            end = place + max(min((end - place) * size * 98 // (tokens * 100), end - place - 1), 1)
        if end < len(text):
            line = text.rfind("\n", place + (end - place) // 2, end)
            end = line + 1 if line >= 0 else end
        parts.append(text[place:end])
        place = end
    return parts, text[place:]


def written(block: Block, about: str, parts: list[str], left: str) -> str:
    """Write the text of a block with these parts, each under a header line.

    A header contains the hash of the whole text, so that no text can forge it.
    """
    ref, total = reference(block), len(parts)
    lines = f"{block.chars} chars, {block.text.count(chr(10)) + 1} lines"
    made = [f"[part 1/{total} of {about} | {lines} | ref {ref}]\n{parts[0]}"]
    made += [f"{_mark(number, total, ref)}{part}" for number, part in enumerate(parts[1:], 2)]
    if left:
        made.append(
            f"\n[cut after part {total}: {len(left)} chars, {left.count(chr(10)) + 1} lines are"
            f" left out, read them by ref {ref}]"
        )
    return "".join(made)


def _mark(number: int, total: int, ref: str) -> str:
    return f"\n[part {number}/{total} | ref {ref}]\n"


def parts_of_shard(block: Block) -> list[str]:
    """Return the parts of a sharded result, each with its header; any other text as one part."""
    text = block.text
    found = _FIRST.match(text) if block.id.startswith("shard:") else None
    if found is None:
        return [text]
    total, parts = int(found.group(1)), []
    for number in range(2, total + 1):
        mark = _mark(number, total, found.group(2))
        part, there, rest = text.partition(mark)
        if not there:
            break
        parts.append(part)
        text = mark[1:] + rest
    return [*parts, text]
