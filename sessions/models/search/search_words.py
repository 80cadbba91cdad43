"""The words of a text as search knows them, and what a query asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from uuid import UUID

from compaction.context.wire import WireBlock, text_of, type_of
from compaction.tools.failures import tells_error

INDEXED_CHARS = 200_000
"""Code points of a block that are searched (our choice)."""

LONGEST_WORD = 64
"""Longer words are known by their beginning: hashes fit, encoded files are cut."""

QUERY_CHARS = 400
MOST_PIECES = 16

LOOKED_AT = 200
"""Matches in a failed result among which its error line is looked for (our choice)."""

PLACES = 20
"""Matches among which the one with most other words beside it is looked for (our choice)."""

SHORT = 3
"""Characters up to which a word is marked only where it stands alone: "no" is in "cannot"."""

LONE_LINE = 60
"""Code points from which a line is an excerpt of its own; of a shorter one, the next lines follow
(our choice)."""

# One character class each and no nesting: linear on any text. Chinese and Japanese have no blanks
# between words, so each of their characters is one.
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_QUOTED = re.compile(r'"([^"]*)"?|([^\s"]+)')

MARK = "\u00a7"
"""Begins a label; no word holds it."""


def searched_text(block: WireBlock) -> str:
    """The text of a block that is searched: what a model reads, of tool calls the argument values,
    so that line breaks are not those of JSON."""
    if type_of(block) == "tool_use":
        return "\n".join(_values(block.get("input")))[:INDEXED_CHARS]
    return text_of(block)[:INDEXED_CHARS]


def _values(given: object) -> Iterator[str]:
    """Texts and numbers inside a JSON value, in order; iterative, because the sender sets the
    depth."""
    waiting = [given]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(reversed(inner.values()))
        elif isinstance(inner, list):
            waiting.extend(reversed(inner))
        elif isinstance(inner, str):
            yield inner
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            yield str(inner)


def words_of(text: str) -> set[str]:
    """The words of a text, in lower case; the parts of names like `HttpServer2` too.

    The index on SQLite removes the words of a block by computing them again: a change here needs a
    migration that empties the index.
    """
    found: set[str] = set()
    for run in set(_WORD.findall(text)):
        found.add(run.lower()[:LONGEST_WORD])
        if len(run) <= LONGEST_WORD and not (run.isdigit() or (run.isalpha() and run.islower())):
            found.update(part.lower() for part in _PART.findall(run))
    return found


def label(name: str, value: object) -> str:
    """A word for a property of a block, such as its tool."""
    text = value.hex if isinstance(value, UUID) else str(value).encode().hex()
    return f"{MARK}{name}{text}"


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A part of a query that a text must hold as it is, apart from case and white space."""

    text: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class SearchQuery:
    """What a person typed: words and names, all to be found; quotes keep words together.

    Any text is a query. Punctuation at both ends of what is not quoted is ignored.
    """

    pieces: tuple[QueryPart, ...]

    @classmethod
    def of(cls, text: str) -> SearchQuery:
        """Read the text of a query."""
        return cls(tuple(_pieces(text[:QUERY_CHARS]))[:MOST_PIECES])

    @property
    def words(self) -> list[str]:
        """The words to look up."""
        return list(dict.fromkeys(word for piece in self.pieces for word in piece.words))

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        # Escaped literals: linear on any text.
        return [re.compile(_pattern(piece.text), re.IGNORECASE) for piece in self.pieces]

    @cached_property
    def _either(self) -> re.Pattern[str]:
        parts = sorted((piece.text for piece in self.pieces), key=lambda text: -len(text))
        return re.compile("|".join(map(_marked, parts)), re.IGNORECASE)

    @cached_property
    def _together(self) -> re.Pattern[str]:
        text = " ".join(piece.text for piece in self.pieces)
        return re.compile(_alone(text), re.IGNORECASE)

    @property
    def _longest(self) -> str:
        return _pattern(self._longest_text)

    @property
    def _longest_text(self) -> str:
        return max((piece.text for piece in self.pieces), key=len)

    def matches(self, text: str) -> bool:
        """Whether a text holds every piece."""
        return all(pattern.search(text) for pattern in self._patterns)

    def together_in(self, text: str) -> bool:
        """Whether a text holds all pieces as typed: in their order, as whole words."""
        return bool(self.pieces) and self._together.search(text) is not None

    def held_by(self, text: str) -> bool:
        """Whether a text that replaces others still holds every piece; no piece is in no text."""
        return bool(self.pieces) and self.matches(text)

    def error_line(self, text: str) -> tuple[int, int] | None:
        """Where the first line of a failed result is that holds the longest piece and tells an
        error; None without one."""
        if not self.pieces:
            return None
        pattern = self._longest
        for match in islice(re.compile(pattern, re.IGNORECASE).finditer(text), LOOKED_AT):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
            if tells_error(text[max(start, match.start() - 400) : min(end, match.end() + 400)]):
                return start, end
        return None

    def excerpt(
        self, text: str, *, before: int, after: int, line: tuple[int, int] | None = None
    ) -> list[tuple[bool, str]]:
        """The line of the best match, in parts: whether it matches, and its text; at most `before`
        and `after` code points around the match, the lines around it if not all pieces stand
        together, and the next ones after a short one. With `line`, the match is in that line, and
        the excerpt ends with it."""
        first, last = line or (0, len(text))
        found, together = self._place(text[first:last], before + after)
        found += first
        begins, ends = first, last
        if together:
            begins = text.rfind("\n", first, found) + 1 or first
            line_end = text.find("\n", found, last)
            ends = line_end if line_end - begins >= LONE_LINE else last
        start, end = max(found - before, begins), min(found + after, ends)
        window = text[start:end]
        parts: list[tuple[bool, str]] = [(False, "…")] if start > begins else []
        at = 0
        marked = self._together if together and len(self.pieces) > 1 else self._either
        for match in marked.finditer(window) if self.pieces else ():
            parts += [(False, window[at : match.start()]), (True, match.group())]
            at = match.end()
        parts += [(False, window[at:]), (False, "…" if end < ends else "")]
        return [(hit, _line(part)) for hit, part in parts if part]

    def _place(self, text: str, around: int) -> tuple[int, bool]:
        """Where all pieces stand together or the only one stands, and True; else where most stand
        `around` the longest one, as a whole word if it is one somewhere."""
        if not self.pieces:
            return 0, False
        if match := self._together.search(text):
            return match.start(), True
        for pattern in (_alone(self._longest_text), self._longest):
            found = islice(re.compile(pattern, re.IGNORECASE).finditer(text), PLACES)
            places = [match.start() for match in found]
            if len(self.pieces) == 1 and places:
                return places[0], True
            if places:
                return max(places, key=lambda at: self._beside(text, at, around)), False
        return 0, False

    def _beside(self, text: str, at: int, around: int) -> int:
        window = text[max(at - around, 0) : at + around]
        return sum(pattern.search(window) is not None for pattern in self._patterns)


def _pieces(text: str) -> Iterator[QueryPart]:
    seen: set[str] = set()
    for quoted, plain in _QUOTED.findall(text):
        piece = " ".join(quoted.split()) if quoted else _trimmed(plain)
        if piece and piece.lower() not in seen:
            seen.add(piece.lower())
            words = (word.lower()[:LONGEST_WORD] for word in _WORD.findall(piece))
            yield QueryPart(piece, tuple(dict.fromkeys(words)))


def _trimmed(plain: str) -> str:
    ends = [match.span() for match in _WORD.finditer(plain)]
    return plain[ends[0][0] : ends[-1][1]] if ends else ""


def _pattern(piece: str) -> str:
    return r"\s++".join(re.escape(word) for word in piece.split())


def _alone(text: str) -> str:
    """The pattern of a text where it stands as whole words."""
    return rf"(?<![^\W_]){_pattern(text)}(?![^\W_])"


def _marked(text: str) -> str:
    """The pattern of a text where an excerpt marks it."""
    return _alone(text) if len(text) <= SHORT else rf"(?<![^\W_]){_pattern(text)}"


def _line(text: str) -> str:
    """White space as single blanks; what no page can show as a sign for it."""
    line = re.sub(r"\s+", " ", text).replace("\x00", "␀")
    return line.encode("utf-8", "replace").decode("utf-8")
