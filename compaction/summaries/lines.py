"""Check whether a text says what a sentence says, without a model."""

from __future__ import annotations

import re
from collections import Counter

ENOUGH = 60
"""Percent of a sentence's distinctive words that must occur in one line (our choice)."""

FIRST = 20
"""Words of a sentence that are compared, from its start: summaries quote the start of longer
ones."""

OPENING = 4
"""Words that identify a shortened quotation: summaries cut a message after its first words."""

WIDE = 40
"""Words of a line examined together: a paragraph on one line contains many sentences."""

MOST_PIECES = 4_000
LONGEST_WORD = 60

_WORD = re.compile(r"\w{2,60}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts without blanks between words: each counts as a word."""

_COMMON = frozenset(
    {
        "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be",
        "because", "been", "before", "but", "by", "can", "cannot", "code", "could", "did", "do",
        "does", "error", "errors", "exit", "exited", "fail", "failed", "failure", "fatal", "for",
        "from", "get", "go", "has", "have", "here", "how", "if", "in", "into", "is", "it", "its",
        "just", "let", "like", "line", "lines", "make", "may", "me", "more", "my", "need", "no",
        "not", "now", "of", "on", "one", "only", "or", "other", "our", "out", "over", "please",
        "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
        "these", "they", "this", "those", "to", "too", "up", "us", "use", "used", "using", "want",
        "was", "we", "were", "what", "when", "where", "which", "while", "will", "with", "would",
        "you", "your",
    }
)  # fmt: skip
"""Words that do not distinguish sentences."""


def words(text: str) -> list[str]:
    """Return the words of a text in order, casefolded; for Chinese and Japanese its letters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += _UNSPACED.findall(word) or [word]
    return found


class IndexedLines:
    """The lines of a text, indexed by their words.

    A sentence matches if it occurs verbatim, or if most of its distinctive words are close together
    in one line; a sentence with fewer than two such words matches only verbatim. Linear in the text
    and in the words looked up.
    """

    def __init__(self, text: str) -> None:
        self._flat = flat(text)
        self._openings: set[str] = set()
        self._by_word: dict[str, list[int]] = {}
        self._pieces = 0
        for line in text.splitlines():
            if self._pieces >= MOST_PIECES:
                break
            self._line(words(line))

    def _line(self, found: list[str]) -> None:
        starts = range(0, max(len(found) - WIDE // 2, 1), WIDE // 2)
        for start in starts[: MOST_PIECES - self._pieces]:
            for word in set(found[start : start + WIDE]) - _COMMON:
                self._by_word.setdefault(word, []).append(self._pieces)
            self._pieces += 1
        for start in range(len(found) - OPENING + 1):
            self._openings.add(" ".join(found[start : start + OPENING]))

    def hold(self, text: str) -> bool:
        """Return whether the text occurs verbatim, ignoring case and blanks."""
        return flat(text) in self._flat

    def say(self, sentence: str) -> bool:
        """Return whether the lines say the sentence; true for a sentence without words."""
        every = list(dict.fromkeys(words(sentence)))
        if not every or self.hold(sentence):
            return True
        wanted = [word for word in every[:FIRST] if word not in _COMMON]
        pieces = Counter(number for word in wanted for number in self._by_word.get(word, ()))
        most = max(pieces.values(), default=0)
        return len(wanted) > 1 and most > 1 and most * 100 >= ENOUGH * len(wanted)

    def quote(self, message: str) -> bool:
        """Return whether a line has a message's opening words, two of them distinctive."""
        opening = words(message[: OPENING * (LONGEST_WORD + 1)])[:OPENING]
        telling = set(opening) - _COMMON
        return len(telling) > 1 and " ".join(opening) in self._openings


def flat(text: str) -> str:
    """Put a text on one line, casefolded."""
    return " ".join(text.casefold().split())
