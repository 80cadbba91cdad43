"""What stays of a big text: the first rows of a table, or both ends, and figures of the whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.hints import hint, one_line, table

WIDEST_ROW = 2_000
"""Code points of a table's row; the rest of the row is cut off."""

_IMAGE = re.compile(r"^\[image", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`figures` say on one line what the whole was; `text` is what stays of it."""

    figures: str
    text: str


def excerpt(text: str, path: str | None, rows: int, head: int, tail: int) -> Excerpt:
    """Cut a text to the first `rows` of a table, or to `head` and `tail` code points.

    The rows shown and their total are said in words (MaybeAi: "756 rows total, showing first
    100"). Cuts fall at line ends where there is one in the nearer half of an end.
    """
    size = f"{len(text)} chars, {text.count(chr(10)) + 1} lines"
    told = hint(text, path)
    found = table(text, path)
    if found is not None:
        total = len(found) - 1
        kept = [one_row(row) for row in found[: rows + 1]]
        if total > rows:
            figures = f"{total} rows total, showing first {rows} | {size} | {told}"
            return Excerpt(figures, _within("\n".join(kept), head + tail, rows))
    figures = " | ".join(filter(None, [size, told]))
    images = len(_IMAGE.findall(text))
    if images:
        figures = f"{figures} | {images} images"
    return Excerpt(figures, _ends(text, head, tail))


def one_row(row: str) -> str:
    """A row of a table, cut where no reader would go on."""
    return row if len(row) <= WIDEST_ROW else one_line(row, WIDEST_ROW)


def _within(text: str, room: int, rows: int) -> str:
    """Rows as many as fit four times the room of a text; a wide table would undo the cut."""
    limit = max(4 * room, 1)
    if len(text) <= limit:
        return text
    kept = text[: text.rfind("\n", 0, limit)] if "\n" in text[:limit] else text[:limit]
    return f"{kept}\n[… of these {rows} rows only {kept.count(chr(10))} fit]"


def _ends(text: str, head: int, tail: int) -> str:
    if len(text) <= head + tail:
        return text
    start = _line_end(text, head)
    end = _line_start(text, len(text) - tail)
    left = text.count("\n", start, end)
    gap = f"[… {end - start} chars, {left} lines left out …]"
    return "\n".join(filter(None, [text[:start].rstrip("\n"), gap, text[end:]]))


def _line_end(text: str, place: int) -> int:
    found = text.rfind("\n", place // 2, place)
    return found + 1 if found >= 0 else place


def _line_start(text: str, place: int) -> int:
    found = text.find("\n", place, place + (len(text) - place) // 2)
    return found + 1 if found >= 0 else place
