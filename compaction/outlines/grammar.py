"""An outline by grammar: the source without bodies, comments and long literals, lines numbered."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from tree_sitter import Node, Parser, Query, QueryCursor
from tree_sitter_language_pack import get_language

from compaction.outlines.grammars import QUERIES

MOST_BYTES = 512 * 1024
MOST_LINES = 20_000
LONGEST_LINE = 10_000
"""A longer line was written by a machine, and there is nothing to outline."""
DEEPEST = 200
"""Brackets within brackets; time of parsing is quadratic in them."""
GENERIC = frozenset({"java", "csharp", "cpp"})
"""Where `<` may open a list of types: so many in one statement keep these parsers busy for ever."""
PATIENCE = 2_000_000
"""Microseconds after which a parse or a query is given up: for hostile text, not for big files."""

SHORT_BODY = 60
"""Bytes up to which a body on the line of its signature stays."""
LONG_LITERAL = 3
SHORT_TYPE = 40
"""Lines of a type beyond which only its head stays."""

_STATEMENT = re.compile(rb"[;{}]")
_BRACKETS = b"()[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEP = {byte: 1 if byte in b"([{" else -1 for byte in _BRACKETS}


@lru_cache(maxsize=len(QUERIES))
def _tools(language: str) -> tuple[Parser, Query]:
    grammar = get_language(language)  # type: ignore[arg-type]
    return Parser(grammar), Query(grammar, QUERIES[language])


def parsable(source: bytes, language: str) -> bool:
    """Whether a text is of a size and shape that a parser takes in reasonable time."""
    if len(source) > MOST_BYTES or b"\0" in source:
        return False
    lines = source.split(b"\n")
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return False
    statements = _STATEMENT.split(source) if language in GENERIC else ()
    if max((part.count(b"<") for part in statements), default=0) > DEEPEST:
        return False
    steps = (_STEP[byte] for byte in source.translate(None, _OTHERS))
    return max(accumulate(steps), default=0) <= DEEPEST


def rows_of(language: str, source: bytes) -> list[tuple[int, str]] | None:
    """The outline as rows: number of the line from 0, and what is left of it.

    None where the parser gives up. Only for a text that is `parsable`.
    """
    parser, query = _tools(language)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            # The successor, a callback, brings the process down in this version.
            parser.timeout_micros = PATIENCE  # type: ignore[misc]
            tree = parser.parse(source)
            cursor = QueryCursor(query, timeout_micros=PATIENCE)
        captures = cursor.captures(tree.root_node)
    except ValueError:
        parser.reset()
        return None
    page = _Page(source)
    page.lay_out(_cuts(source, captures))
    return page.rows()


class _Cut(NamedTuple):
    """A stretch that is hidden or, inside a hidden one, shown; the longer of two comes first."""

    start: int
    end: int
    row: int
    end_row: int
    shown: bool = False
    instead: bytes = b""


def _cut(node: Node, instead: bytes = b"", shown: bool = False) -> _Cut:
    ends = (node.start_point[0], node.end_point[0])
    return _Cut(node.start_byte, node.end_byte, *ends, shown, instead)


def _cuts(source: bytes, captures: dict[str, list[Node]]) -> list[_Cut]:
    cuts = [_cut(node, shown=True) for node in captures.get("def", ())]
    for node in captures.get("body", ()):
        cut = _cut(node, b"...")
        beside = source[source.rfind(b"\n", 0, cut.start) + 1 : cut.start].strip()
        if cut.row != cut.end_row or cut.end - cut.start > SHORT_BODY or not beside:
            braced = source[cut.start : cut.start + 1] == b"{"
            cuts.append(_cut(node, b"{ ... }" if braced else b"..."))
    for node in captures.get("long", ()):
        if node.end_point[0] - node.start_point[0] >= LONG_LITERAL:
            cuts.append(_cut(node, b"..."))
    for node in captures.get("type", ()):
        if node.end_point[0] - node.start_point[0] > SHORT_TYPE:
            head = _line_end(source, node.start_byte, SHORT_TYPE)
            row = node.start_point[0] + SHORT_TYPE
            cuts.append(_Cut(head, node.end_byte, row, node.end_point[0], instead=b"..."))
    cuts.extend(_cut(node) for node in captures.get("drop", ()))
    imports = captures.get("import", ())
    lines = sum(1 + max(0, one.end_point[0] - one.start_point[0] - 1) for one in imports)
    for number, node in enumerate(imports):
        cuts.append(_cut(node, b"" if number else b"(imports, %d lines)" % lines))
    return sorted(cuts, key=_order)


def _order(cut: _Cut) -> tuple[int, int, bool]:
    return cut.start, -cut.end, cut.shown


def _line_end(source: bytes, place: int, lines: int) -> int:
    for _ in range(lines):
        place = source.find(b"\n", place + 1)
    return place


@dataclass(slots=True)
class _Page:
    """Puts what is shown on its rows."""

    source: bytes
    parts: dict[int, list[bytes]] = field(default_factory=dict)
    place: int = 0
    row: int = 0
    last: int = 0

    def lay_out(self, cuts: Iterable[_Cut]) -> None:
        """Walk the source from cut to cut."""
        open_cuts = [_Cut(0, len(self.source), 0, self.source.count(b"\n"), shown=True)]
        for cut in cuts:
            while open_cuts[-1].end <= cut.start and len(open_cuts) > 1:
                self._go(open_cuts.pop())
            if cut.start < self.place or cut.end > open_cuts[-1].end:
                continue
            around = open_cuts[-1]
            self._pass(cut.start, cut.row, around.shown)
            if cut.shown and not around.shown:
                self._indent(cut)
            elif not cut.shown and around.shown and cut.instead:
                self._instead(cut)
            open_cuts.append(cut)
        while open_cuts:
            self._go(open_cuts.pop())

    def _go(self, cut: _Cut) -> None:
        self._pass(cut.end, cut.end_row, cut.shown)

    def _pass(self, to: int, row: int, shown: bool) -> None:
        if to <= self.place:
            return
        if shown:
            for number, part in enumerate(self.source[self.place : to].split(b"\n"), self.row):
                self._put(number, part)
        self.place, self.row = to, row

    def _put(self, row: int, part: bytes) -> None:
        if part:
            self.parts.setdefault(row, []).append(part)
            if part.strip():
                self.last = row

    def _indent(self, cut: _Cut) -> None:
        start = self.source.rfind(b"\n", 0, cut.start) + 1
        lead = self.source[start : cut.start]
        if not lead.strip():
            self.parts[cut.row] = [lead]

    def _instead(self, cut: _Cut) -> None:
        """A mark behind the last thing that was shown, where nothing else stands between."""
        if cut.instead.startswith(b"("):
            self._put(cut.row, cut.instead)
            return
        parts = self.parts.setdefault(self.last, [b""])
        parts[-1] = parts[-1].rstrip()
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
            parts[-1] = parts[-1].rstrip()
        self.parts[self.last].append(b" " + cut.instead)

    def rows(self) -> list[tuple[int, str]]:
        """Rows that are not empty, in order."""
        rows = ((row, b"".join(self.parts[row])) for row in sorted(self.parts))
        return [(row, text.decode("utf-8", "replace").rstrip()) for row, text in rows]
