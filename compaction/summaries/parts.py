"""Split a span into parts that fit into a summarizer's window."""

from __future__ import annotations

from collections.abc import Iterator

from compaction.context.blocks import Block
from compaction.context.groups import Groups
from compaction.context.stubs import reference
from compaction.proposals.plan import Count, Span

DEPTH = 4
"""Maximum halvings of a span, for at most sixteen parts (our choice)."""

APART = 2
"""Tokens of the separator between two blocks."""

_NAMES = {
    "text": "",
    "thinking": "thinking",
    "tool_use": "calls",
    "tool_result": "result of",
}

LEAST = 40
"""Minimum characters kept of a block, besides its header line (our choice)."""

Group = list[tuple[str, int]]
"""Text and tokens of each block between two possible cuts of a context."""


def batches(span: Span, count: Count, room: int) -> list[str]:
    """Render the blocks of a span as text, in parts of at most `room` tokens each.

    Dakou's rule: a part that does not fit is halved, and the summary of the first half goes to the
    second. Parts end where a context may be cut, so that no call is separated from its result and
    no response is split; if that is impossible, between blocks. A block larger than a part, and
    every block that is still too long after `DEPTH` halvings, is reduced to its two ends, cut on
    code points; its header line stays, even if many of them exceed `room`.
    """
    return ["\n\n".join(part) for part in _halved(_groups(span, count, room), room, DEPTH)]


def _halved(groups: list[Group], room: int, depth: int) -> Iterator[list[str]]:
    blocks = [block for group in groups for block in group]
    size = _size(blocks)
    if size <= room:
        yield [text for text, _ in blocks]
    elif depth == 0:
        yield [_cut(text, tokens, tokens * room // size) for text, tokens in blocks]
    else:  # at least two groups, since none is larger than the room
        middle = _middle(groups, size)
        yield from _halved(groups[:middle], room, depth - 1)
        yield from _halved(groups[middle:], room, depth - 1)


def _size(group: Group) -> int:
    return sum(tokens for _, tokens in group)


def _middle(groups: list[Group], size: int) -> int:
    """Return how many groups come closest to half of all tokens; at least one on either side."""
    seen, best = 0, 1
    for number, group in enumerate(groups[:-1], 1):
        tokens = _size(group)
        if abs(2 * (seen + tokens) - size) <= abs(2 * seen - size):
            best = number
        seen += tokens
    return best


def _groups(span: Span, count: Count, room: int) -> list[Group]:
    """Group blocks that must stay together; split groups that exceed a part."""
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
    """Yield each block with a header line that names the speaker and the reference."""
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
    """Reduce a block to its header line, beginning and end, with a note on the gap."""
    line, said = text.split("\n", 1)
    chars = max(int(len(text) * room / max(tokens, 1) * 0.9) - 60 - len(line), LEAST)
    if chars >= len(said):
        return text
    head, tail = chars * 2 // 3, chars // 3
    gone = len(said) - head - tail
    return f"{line}\n{said[:head]}\n[… {gone} characters are left out here …]\n{said[-tail:]}"
