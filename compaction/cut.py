"""What stays of a big text at its entry: rows of a table or both ends, and figures of the whole."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.hints import hint, table

WIDEST_ROW = 2_000
"""Code points of a table's row; the rest of the row is cut off."""


@dataclass(frozen=True, slots=True)
class Cut:
    """`figures` say on one line what the whole was; `text` is what stays of it."""

    figures: str
    text: str


def cut(text: str, path: str | None, rows: int, head: int, tail: int) -> Cut:
    """Cut a text to the first `rows` of a table, or to `head` and `tail` code points.

    Of a table the figures are MaybeAi's ("756 rows total, showing first 100"). Its rows may take
    no more than both ends of another text would, or one wide table undid the cut.
    """
    told = hint(text, path)
    figures = f"{len(text)} chars, {text.count(chr(10)) + 1} lines"
    found = table(text, path)
    if found is not None:
        shown = _rows(found[0], rows, head + tail)
        total = len(found[0]) - 1
        figures = f"{total} rows total, showing first {len(shown) - 1} | {figures} | {told}"
        return Cut(figures, "\n".join(shown))
    return Cut(" | ".join(filter(None, [figures, told])), _ends(text, head, tail))


def _rows(lines: list[str], rows: int, room: int) -> list[str]:
    """The head of a table and its first rows; as many as there is room for, the head always."""
    kept: list[str] = []
    for line in lines[: rows + 1]:
        row = line if len(line) <= WIDEST_ROW else f"{line[: WIDEST_ROW - 1]}…"
        room -= len(row) + 1
        if kept and room < 0:
            break
        kept.append(row)
    return kept


def _ends(text: str, head: int, tail: int) -> str:
    """Both ends of a text, cut at a line end where the nearer half of an end has one."""
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
