"""A span in parts that fit into a summarizer's window, halved as often as it takes."""

from __future__ import annotations

from collections.abc import Iterator

from compaction.context import Block
from compaction.groups import Groups
from compaction.plan import Count, Span
from compaction.stubs import reference

DEPTH = 4
"""How often a span is halved, so that there are sixteen parts at most (ours)."""

APART = 2
"""Tokens of what stands between two blocks."""

_NAMES = {
    "text": "",
    "thinking": "thinking",
    "tool_use": "calls",
    "tool_result": "result of",
}

LEAST = 40
"""Characters that stay of a block at least, beyond the line before it (ours)."""

Group = list[tuple[str, int]]
"""Text and tokens of each block between two places where a context may be cut."""


def batches(span: Span, count: Count, room: int) -> list[str]:
    """The blocks of a span as text, in parts of at most `room` tokens each.

    Dakou's rule: what does not fit is halved; the summary of the first half goes to the second.
    Parts end where a context may be cut, so that no call stands without its result, nor a response
    in two; where that cannot be, between blocks. A block that is larger than a part, and each block
    of what is still too long after `DEPTH` halvings, is given by its two ends, cut on code points;
    the line that says what it is stays, also where many such lines are more than `room`.
    """
    return ["\n\n".join(part) for part in _halved(_groups(span, count, room), room, DEPTH)]


def _halved(groups: list[Group], room: int, depth: int) -> Iterator[list[str]]:
    blocks = [block for group in groups for block in group]
    size = _size(blocks)
    if size <= room:
        yield [text for text, _ in blocks]
    elif depth == 0:
        yield [_cut(text, tokens, tokens * room // size) for text, tokens in blocks]
    else:  # two groups at least: none is larger than the room
        middle = _middle(groups, size)
        yield from _halved(groups[:middle], room, depth - 1)
        yield from _halved(groups[middle:], room, depth - 1)


def _size(group: Group) -> int:
    return sum(tokens for _, tokens in group)


def _middle(groups: list[Group], size: int) -> int:
    """How many groups come nearest to half of all tokens; one at least on either side."""
    seen, best = 0, 1
    for number, group in enumerate(groups[:-1], 1):
        tokens = _size(group)
        if abs(2 * (seen + tokens) - size) <= abs(2 * seen - size):
            best = number
        seen += tokens
    return best


def _groups(span: Span, count: Count, room: int) -> list[Group]:
    """Blocks that may not be parted, together; apart where they are more than one part holds."""
    groups = Groups()
    for original in span.originals:
        groups.add(original)
    cuts = set(groups.cuts)
    found: list[Group] = []
    for block, text in _texts(span):
        tokens = count(text) + APART
        if tokens > room:
            text, tokens = _cut(text, tokens, room), room
        if block.position in cuts or not found:
            found.append([])
        found[-1].append((text, tokens))
    fitting: list[Group] = []
    for group in found:
        fitting += [group] if _size(group) <= room else [[block] for block in group]
    return fitting


def _texts(span: Span) -> Iterator[tuple[Block, str]]:
    """Each block with a line before it that says who speaks and by what it is found again."""
    kept = {block.position for block in span.kept}
    tools = {b.tool_call: b.tool for b in span.originals if b.type == "tool_use"}
    for block, original in zip(span.blocks, span.originals, strict=True):
        if block.position not in kept:
            yield original, f"{_head(block, original, tools)}\n{block.text}"


def _head(block: Block, original: Block, tools: dict[str | None, str | None]) -> str:
    who = {"user": "person", "tool": "tool"}.get(block.role, block.role)
    if block.type == "tool_result":
        who = "tool"
    what = _NAMES.get(block.type, block.type)
    about = block.tool or tools.get(block.tool_call) or ""
    failed = ", failed" if block.error else ""
    head = " ".join(part for part in (who, what, about) if part)
    return f"[{head}{failed}, ref {reference(original)}]"


def _cut(text: str, tokens: int, room: int) -> str:
    """The line before a block, beginning and end of what is too long, what is left out between."""
    line, said = text.split("\n", 1)
    chars = max(int(len(text) * room / max(tokens, 1) * 0.9) - 60 - len(line), LEAST)
    if chars >= len(said):
        return text
    head, tail = chars * 2 // 3, chars // 3
    gone = len(said) - head - tail
    return f"{line}\n{said[:head]}\n[… {gone} characters are left out here …]\n{said[-tail:]}"
