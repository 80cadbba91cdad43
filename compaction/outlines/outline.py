"""Outline a file: its declarations with line numbers, without their implementation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from compaction.outlines.grammar import parsable, rows_of
from compaction.outlines.grammars import language_of
from compaction.proposals.plan import FileText
from compaction.seen.shown import content

MOST_ROWS = 1_500
"""Maximum rows of an outline; further rows are only counted."""
WIDTH = 240
"""Maximum code points of a row; the rest of the line is cut off."""
SHARE = 0.6
"""If an outline has more than this share of the file's lines, the grammar did not fit."""
SPARSE = 8
"""An outline by indentation keeps at most one line in this many."""
FEW = 60

_CLOSING = re.compile(r"[\s})\];,>]*+(?:end)?")
_TAB = 4


def outline(text: str, path: str) -> str:
    """Outline a file as a tool showed it (with or without line numbers).

    One row `number⇥text` for each line kept: short types in full, constants, full signatures with
    `...` for bodies, and named inner functions. Falls back to indentation if the path has no
    grammar, the text is too big or unusual, or parsing times out. Never raises. Parsing runs in C:
    call it in a process that can be killed.
    """
    shown, first = content(text)
    language = language_of(path)
    rows = _by_grammar(shown, language) if language else None
    if rows is None:
        rows = by_indentation(shown)
    lines = [f"{first + row}\t{line[:WIDTH]}" for row, line in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        lines.append(f"... and {len(rows) - MOST_ROWS} more lines")
    return "\n".join(lines)


def outline_of(file: FileText) -> str:
    """Outline a file for a strategy."""
    return outline(file.text, file.path)


def _by_grammar(text: str, language: str) -> list[tuple[int, str]] | None:
    source = text.encode("utf-8", "replace")
    if not parsable(source, language):
        return None
    rows = rows_of("c" if _is_c(language, source) else language, source)
    if rows is None:
        return None
    rows_kept = [(row, line) for row, line in rows if not _CLOSING.fullmatch(line)]
    lines = source.count(b"\n") + 1
    return rows_kept if rows_kept and (len(rows_kept) <= SHARE * lines or lines <= FEW) else None


def _is_c(language: str, source: bytes) -> bool:
    return language == "cpp" and not re.search(rb"\b(?:class|namespace|template)\b", source)


def by_indentation(text: str) -> list[tuple[int, str]]:
    """Return the least indented lines, to a depth that keeps at most one line in eight."""
    lines = text.split("\n")
    deep = {row: depth for row, line in enumerate(lines) if (depth := _depth(line)) is not None}
    room = max(FEW, min(len(lines) // SPARSE, MOST_ROWS))
    kept: list[int] = []
    counts = Counter(deep.values())
    limit, total = -1, 0
    for depth in sorted(counts):
        total += counts[depth]
        if total > room and limit >= 0:
            break
        limit = depth
    kept = [row for row, depth in deep.items() if depth <= limit]
    if len(kept) > room:
        kept = kept[:: -(-len(kept) // room)]
    return list(_clipped(lines, kept))


def _depth(line: str) -> int | None:
    """Return the columns of indentation; None for a line that only closes something."""
    head = line[:WIDTH]
    if _CLOSING.fullmatch(head):
        return None
    blank = head[: len(head) - len(head.lstrip())]
    return len(blank) + blank.count("\t") * (_TAB - 1)


def _clipped(lines: list[str], rows: Iterable[int]) -> Iterable[tuple[int, str]]:
    return ((row, lines[row][:WIDTH].rstrip()) for row in rows)
