"""Whether a text says what a sentence says, as far as that shows without a model."""

from __future__ import annotations

import re
from collections import Counter

ENOUGH = 60
"""Percent of a sentence's words that have to stand together in one line (ours)."""

FIRST = 20
"""Words of a sentence that are looked for: what is longer is told by how it begins, as summaries
quote it."""

MOST_LINES = 2_000
LONGEST_WORD = 60

_WORD = re.compile(r"\w{2,60}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Letters of scripts that put no blanks between words: each of them counts as one."""


def words(text: str) -> list[str]:
    """Words of a text in order, without case; of Chinese and Japanese its letters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        found += _UNSPACED.findall(word) or [word]
    return found


class Lines:
    """The lines of a text, by their words. A sentence is told where it stands, or where most of
    its words stand in one line. Linear in the text and in the words that are looked up."""

    def __init__(self, text: str) -> None:
        self._flat = flat(text)
        self._by_word: dict[str, list[int]] = {}
        for number, line in enumerate(text.splitlines()[:MOST_LINES]):
            for word in set(words(line)):
                self._by_word.setdefault(word, []).append(number)

    def hold(self, text: str) -> bool:
        """Whether they hold a text as it stands, but for case and blanks."""
        return flat(text) in self._flat

    def tell(self, sentence: str) -> bool:
        """Whether they say it; a sentence without a word is told."""
        wanted = list(dict.fromkeys(words(sentence)))[:FIRST]
        if not wanted or self.hold(sentence):
            return True
        lines = Counter(number for word in wanted for number in self._by_word.get(word, ()))
        most = max(lines.values(), default=0)
        return len(wanted) > 1 and most * 100 >= ENOUGH * len(wanted)


def flat(text: str) -> str:
    """A text on one line, without case."""
    return " ".join(text.casefold().split())
