"""Whether a text says what a sentence says, as far as that shows without a model."""

from __future__ import annotations

import re
from collections import Counter

ENOUGH = 60
"""Percent of a sentence's distinctive words that have to stand together in one line (ours)."""

FIRST = 20
"""Words of a sentence that are looked for: what is longer is told by how it begins, as summaries
quote it."""

OPENING = 4
"""Words by which a shortened quotation is known: summaries cut a message after its first ones."""

WIDE = 40
"""Words of a line that are read as one: a paragraph on one line holds many sentences."""

MOST_PIECES = 4_000
LONGEST_WORD = 60

_WORD = re.compile(r"\w{2,60}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no blanks between words: each of them counts as one."""

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
"""Words that tell no sentence from another."""


def words(text: str) -> list[str]:
    """Words of a text in order, without case; of Chinese and Japanese its letters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += _UNSPACED.findall(word) or [word]
    return found


class Lines:
    """The lines of a text, by their words. A sentence is told where it stands, or where most of
    its distinctive words stand close together in one line; of a sentence without two such words
    nothing but itself does. Linear in the text and in the words that are looked up."""

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
        """Whether they hold a text as it stands, but for case and blanks."""
        return flat(text) in self._flat

    def tell(self, sentence: str) -> bool:
        """Whether they say it; a sentence without a word is told."""
        every = list(dict.fromkeys(words(sentence)))
        if not every or self.hold(sentence):
            return True
        wanted = [word for word in every[:FIRST] if word not in _COMMON]
        pieces = Counter(number for word in wanted for number in self._by_word.get(word, ()))
        most = max(pieces.values(), default=0)
        return len(wanted) > 1 and most > 1 and most * 100 >= ENOUGH * len(wanted)

    def quote(self, message: str) -> bool:
        """Whether a line has the words with which a message opens, two of them distinctive."""
        opening = words(message[: OPENING * (LONGEST_WORD + 1)])[:OPENING]
        telling = set(opening) - _COMMON
        return len(telling) > 1 and " ".join(opening) in self._openings


def flat(text: str) -> str:
    """A text on one line, without case."""
    return " ".join(text.casefold().split())
