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

Piece = tuple[str, int]
"""Text and tokens of the blocks between two places where a context may be cut."""


def batches(span: Span, count: Count, room: int) -> list[str]:
    """The blocks of a span as text, in parts of at most `room` tokens each.

    Dakou's rule: what does not fit is halved; the summary of the first half goes to the second.
    Parts end where a context may be cut, so that no call stands without its result, nor a response
    in two; where that cannot be, between blocks. A block that is larger than a part, and what is
    still too long after `DEPTH` halvings, is given by its two ends, cut on code points.
    """
    groups = _groups(span, count, room)
    return ["\n\n".join(text for text, _ in part) for part in _halved(groups, room, DEPTH)]


def _halved(pieces: list[Piece], room: int, depth: int) -> Iterator[list[Piece]]:
    size = sum(tokens for _, tokens in pieces)
    if size <= room or (len(pieces) == 1 and pieces[0][1] <= room):
        yield pieces
    elif depth == 0 or len(pieces) == 1:
        yield [(_cut(text, tokens, tokens * room // size), 0) for text, tokens in pieces]
    else:
        middle = _middle(pieces, size)
        yield from _halved(pieces[:middle], room, depth - 1)
        yield from _halved(pieces[middle:], room, depth - 1)


def _middle(pieces: list[Piece], size: int) -> int:
    """How many pieces come nearest to half of all tokens; one at least on either side."""
    seen, best = 0, 1
    for number, (_, tokens) in enumerate(pieces[:-1], 1):
        if abs(2 * (seen + tokens) - size) <= abs(2 * seen - size):
            best = number
        seen += tokens
    return best


def _groups(span: Span, count: Count, room: int) -> list[Piece]:
    """The texts of blocks that may not be parted, together; apart where they fill a part alone."""
    groups = Groups()
    for original in span.originals:
        groups.add(original)
    cuts = set(groups.cuts)
    found: list[list[Piece]] = []
    for block, text in _texts(span):
        tokens = count(text) + APART
        if tokens > room:
            text, tokens = _cut(text, tokens, room), room
        if block.position in cuts or not found:
            found.append([])
        found[-1].append((text, tokens))
    pieces: list[Piece] = []
    for group in found:
        if sum(tokens for _, tokens in group) > room:
            pieces.extend(group)
        else:
            pieces.append(("\n\n".join(t for t, _ in group), sum(n for _, n in group)))
    return pieces


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
    """Beginning and end of a text that is too long, with what is left out said between."""
    chars = max(int(len(text) * room / max(tokens, 1) * 0.9) - 60, 40)
    if chars >= len(text):
        return text
    head, tail = chars * 2 // 3, chars // 3
    gone = len(text) - head - tail
    return f"{text[:head]}\n[… {gone} characters are left out here …]\n{text[-tail:]}"
