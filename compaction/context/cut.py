"""Shorten a large text on arrival: the first rows of a table or both ends, plus figures of the
whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from compaction.context.hints import hint, table

WIDEST_ROW = 2_000
"""Code points of a table's row; longer rows are cut."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A shortened text, and one line of `figures` about the whole."""

    figures: str
    text: str


def cut(text: str, path: str | None, rows: int, head: int, tail: int) -> Cut:
    """Cut a text to the first `rows` of a table, or to `head` and `tail` code points.

    The figures of a table follow MaybeAi ("756 rows total, showing first 100"). The rows of a table
    get no more than `head + tail` code points together, because a single wide table could otherwise
    exceed the cut.
    """
    about = hint(text, path)
    figures = f"{len(text)} chars, {text.count(chr(10)) + 1} lines"
    found = table(text, path)
    if found is not None:
        shown = _rows(found[0], rows, head + tail)
        total = len(found[0]) - 1
        figures = f"{total} rows total, showing first {len(shown) - 1} | {figures} | {about}"
        return Cut(figures, "\n".join(shown))
    return Cut(" | ".join(filter(None, [figures, about])), _ends(text, head, tail))


def _rows(lines: list[str], rows: int, room: int) -> list[str]:
    """Return the header of a table and as many of its first rows as fit."""
    kept: list[str] = []
    for line in lines[: rows + 1]:
        row = line if len(line) <= WIDEST_ROW else f"{line[: WIDEST_ROW - 1]}…"
        room -= len(row) + 1
        if kept and room < 0:
            break
        kept.append(row)
    return kept


def _ends(text: str, head: int, tail: int) -> str:
    """Keep both ends of a text, cut at a line end where the nearer half of an end has one."""
    if len(text) <= head + tail:
        return text
    start, end = head, len(text) - tail
    before = text.rfind("\n", start // 2, start)
    after = text.find("\n", end, end + tail // 2)
    start = before + 1 if before >= 0 else start
    end = after + 1 if after >= 0 else end
    lines = text.count("\n", start, end)
    gap = f"[… {end - start} chars, {lines} lines left out …]"
    return "\n".join(filter(None, [text[:start].rstrip("\n"), gap, text[end:]]))
