"""Outline source by grammar: without bodies, comments and long literals, with line numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import accumulate

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from compaction.outlines.grammars import PACKAGES, QUERIES

MOST_BYTES = 512 * 1024
MOST_LINES = 20_000
LONGEST_LINE = 10_000
"""A longer line is generated code without anything to outline."""
DEEPEST = 200
"""Maximum bracket depth; parsing time is quadratic in it."""
GENERIC = frozenset({"java", "csharp", "cpp"})
"""Grammars in which `<` may open a type list: many in one statement hang these parsers."""
PATIENCE = 2_000_000
"""Timeout of a parse or a query in microseconds: for hostile texts, not for big files."""

SHORT_BODY = 60
"""Maximum bytes of a body that stays on the line of its signature."""
LONG_LITERAL = 3
SHORT_TYPE = 40
"""Lines of a type above which only its head stays."""

_STATEMENT = re.compile(rb"[;{}]")
_BRACKETS = b"()[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = bytes.maketrans(_BRACKETS, b"\1\xff" * 3)
"""Change of depth per byte: +1 for opening brackets, -1 for closing ones."""

_BODY, _LONG, _TYPE, _DROP, _IMPORT, _DEF = range(6)
"""The reasons for a cut; of two cuts over the same range, the lower comes first."""
_Cut = tuple[int, int, int, bytes]
"""A hidden range or, inside one, a shown range: start, negative end, reason and mark. Sorted, the
longer of two ranges with the same start comes first."""


@lru_cache(maxsize=len(QUERIES))
def _tools(language: str) -> tuple[Parser, Query]:
    package, _, function = PACKAGES.get(language, language).partition(":")
    made = getattr(import_module(f"tree_sitter_{package}"), function or "language")()
    grammar = Language(made)
    return Parser(grammar), Query(grammar, QUERIES[language])


def parsable(source: bytes, language: str) -> bool:
    """Return whether a text has a size and shape that parse in reasonable time."""
    if len(source) > MOST_BYTES or b"\0" in source:
        return False
    lines = source.split(b"\n")
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return False
    many = language in GENERIC and source.count(b"<") > DEEPEST
    if many and max(part.count(b"<") for part in _STATEMENT.split(source)) > DEEPEST:
        return False
    steps = memoryview(source.translate(_STEPS, _OTHERS)).cast("b")
    return max(accumulate(steps), default=0) <= DEEPEST


def rows_of(language: str, source: bytes) -> list[tuple[int, str]] | None:
    """Return the outline as rows: line number from 0, and the rest of the line.

    None if the parser times out. The text must be `parsable`.
    """
    parser, query = _tools(language)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # The callback that replaces it crashes the process in this version.
            parser.timeout_micros = PATIENCE  # type: ignore[misc]
            tree = parser.parse(source)
            cursor = QueryCursor(query, timeout_micros=PATIENCE)
        captures = cursor.captures(tree.root_node)
    except ValueError:
        parser.reset()
        return None
    text = _laid_out(source, sorted(_cuts(source, captures))).decode("utf-8", "replace")
    return [(row, kept) for row, line in enumerate(text.split("\n")) if (kept := line.rstrip())]


def _cuts(source: bytes, captures: dict[str, list[Node]]) -> Iterator[_Cut]:
    for start, end in _ranges(captures, "def"):
        yield start, -end, _DEF, b""
    for start, end in _ranges(captures, "body"):
        if (
            end - start > SHORT_BODY
            or b"\n" in source[start:end]
            or not source[source.rfind(b"\n", 0, start) + 1 : start].strip()
        ):
            yield start, -end, _BODY, b" { ... }" if source.startswith(b"{", start) else b" ..."
    for start, end in _ranges(captures, "long"):
        # Most are on one line: checking that first saves a call for each.
        if source.find(b"\n", start, end) >= 0 <= _line_end(source, start, end, LONG_LITERAL):
            yield start, -end, _LONG, b" ..."
    for start, end in _ranges(captures, "type"):
        head = _line_end(source, start, end, SHORT_TYPE)
        if head >= 0 and source.find(b"\n", head + 1, end) >= 0:
            yield head, -end, _TYPE, b" ..."
    for start, end in _ranges(captures, "drop"):
        yield start, -end, _DROP, b""
    # Captures are unordered, and the mark belongs to the first.
    calls = (one for one in _ranges(captures, "call") if source.startswith(b"require", one[0]))
    imports = sorted((*_ranges(captures, "import"), *calls))
    lines = sum(max(1, source.count(b"\n", start, end)) for start, end in imports)
    for number, (start, end) in enumerate(imports):
        yield start, -end, _IMPORT, b"" if number else b"(imports, %d lines)" % lines


def _ranges(captures: dict[str, list[Node]], name: str) -> Iterator[tuple[int, int]]:
    """Yield the range of each node of a capture; reads each node once, because that is slow."""
    return (node.byte_range for node in captures.get(name, ()))


def _line_end(source: bytes, start: int, end: int, lines: int) -> int:
    """Return where the given number of lines ends; -1 if that is not before `end`."""
    place = start - 1
    for _ in range(lines):
        place = source.find(b"\n", place + 1, end)
        if place < 0:
            break
    return place


def _laid_out(source: bytes, cuts: Iterable[_Cut]) -> bytes:
    """Return the shown text, plus the line breaks of hidden ranges to keep line numbers."""
    out: list[bytes] = []
    around: list[tuple[int, bool]] = []
    place, end, shown = 0, len(source), True
    for start, minus_end, why, mark in cuts:
        while end <= start and around:
            if place < end:
                out.append(source[place:end] if shown else _breaks(source, place, end))
                place = end
            end, shown = around.pop()
        if start < place or -minus_end > end:
            continue
        if place < start:
            out.append(source[place:start] if shown else _breaks(source, place, start))
            place = start
        around.append((end, shown))
        if why == _DEF:
            if not shown:
                _indent(out, source, start)
        elif shown and mark:
            _mark(out, mark)
        end, shown = -minus_end, why == _DEF
    for outer in (*reversed(around), (0, False)):
        out.append(source[place:end] if shown else _breaks(source, place, end))
        place = end
        end, shown = outer
    return b"".join(out)


def _breaks(source: bytes, start: int, end: int) -> bytes:
    return b"\n" * source.count(b"\n", start, end)


def _indent(out: list[bytes], source: bytes, place: int) -> None:
    """Indent a line as the source does, unless the line has content already."""
    lead = source[source.rfind(b"\n", 0, place) + 1 : place]
    if lead.strip():
        return
    last = b""
    while out and not last:
        last = out.pop().rstrip(b" \t\r\v\f")
    out += (last, lead)


def _mark(out: list[bytes], mark: bytes) -> None:
    """Append a mark, behind the last shown text if it follows a hidden range."""
    if mark.startswith(b"("):
        out.append(mark)
        return
    kept = blank = b""
    while out and not kept:
        last = out.pop()
        kept = last.rstrip()
        blank = last[len(kept) :] + blank
    out += (kept, mark)
    if b"\n" in blank:
        out.append(blank[blank.index(b"\n") :])
