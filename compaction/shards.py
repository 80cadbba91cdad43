"""A long result in parts: how it is cut, written as one text, and taken apart to be sent."""

from __future__ import annotations

import re

from compaction.context import Block
from compaction.plan import Count
from compaction.stubs import reference

READ_ON = "[This part is read. The next one, please.]"
"""What stands for the assistant between two parts."""

_FIRST = re.compile(r"\[part 1/(\d{1,3}) of [^\n]{0,400}\| ref ([^\s\]|]{1,200})\]\n")


def cut(text: str, size: int, most: int, count: Count) -> tuple[list[str], str]:
    """Parts of at most `size` tokens each, at most so many, and what is left beyond them.

    Cuts fall behind a line where the second half of a part has an end of one.
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
    """The text of a block that holds these parts, each under a line that no text can forge: it
    holds the hash of the text itself."""
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
    """The parts of a sharded result as they are sent, each with its line; any other text whole."""
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
