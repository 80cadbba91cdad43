"""A team's own masking rules: literal words, or a pattern, and what a match becomes.

People write these patterns, so none runs over a whole text but once. RE2 tells in linear time
whether it matches anywhere; only then its matches are looked for, in windows of a line. Work is
linear in the text with a fixed factor, whatever the pattern is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import re2

RuleKind = Literal["words", "pattern"]

LONGEST_PATTERN = 500
"""Characters of a pattern."""
MOST_WORDS, LONGEST_WORD = 200, 200
MOST_RULES = 30
"""Per team."""
LARGEST_PROGRAM = 1_000
"""Instructions of a compiled rule: more make a search slow."""
WINDOW = 4_096
"""Bytes of a line that a pattern sees at once; matches are no longer than half of it."""
MOST_MATCHES = 128
"""In a window; with more, the window is masked as a whole."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,29}")
_LINES = re.compile(rb"[^\n]+")


class BadRule(ValueError):
    """A rule that cannot be used: the field, and why, as a sentence."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True, slots=True)
class TeamRule:
    """A rule: `name` counts its matches, `text` is a pattern, or words, one a line."""

    name: str
    kind: RuleKind
    text: str
    replacement: str

    def is_in(self, text: str) -> bool:
        """Whether the rule may match somewhere in a text."""
        data = text.encode("utf-8", "surrogatepass")
        return _compiled(self.kind, self.text).search(data) is not None

    def ranges(self, data: bytes) -> list[tuple[int, int]]:
        """The matches in UTF-8 bytes, in order and disjoint."""
        found = _compiled(self.kind, self.text)
        if found.search(data) is None:
            return []
        ranges = _in_windows(found, data, whole_words=self.kind == "words")
        return [one for one in ranges if not self._is_masked(data, *one)]

    def _is_masked(self, data: bytes, start: int, end: int) -> bool:
        """Whether a match is part of the replacement, from an earlier masking."""
        mask = self.replacement.encode()
        at = data.find(mask, max(start - len(mask) + 1, 0), end + len(mask) - 1)
        return 0 <= at <= start and end <= at + len(mask)


def check(rule: TeamRule) -> None:
    """Raise BadRule unless the rule can be used."""
    if not _NAME.fullmatch(rule.name):
        raise BadRule("name", "Use 3 to 30 capitals, digits and underscores, such as CUSTOMER.")
    if not rule.replacement.isprintable() or not 1 <= len(rule.replacement) <= 60:
        raise BadRule("replacement", "Use 1 to 60 printable characters.")
    if rule.kind == "words":
        words = words_in(rule.text)
        if not words or len(words) > MOST_WORDS or max(map(len, words)) > LONGEST_WORD:
            most = f"{MOST_WORDS} words of at most {LONGEST_WORD} characters"
            raise BadRule("text", f"Write 1 to {most}, one a line.")
    elif not rule.text or len(rule.text) > LONGEST_PATTERN:
        raise BadRule("text", f"A pattern has 1 to {LONGEST_PATTERN} characters.")
    if _checked(rule).search(b"") is not None:
        raise BadRule("text", "It matches empty text. Let it require at least one character.")


def _checked(rule: TeamRule) -> Any:
    """The compiled rule. Raises BadRule."""
    try:
        found = _compiled(rule.kind, rule.text)
    except re2.error as error:
        problem = error.args[0] if error.args else ""
        said = problem.decode("utf-8", "replace") if isinstance(problem, bytes) else str(problem)
        raise BadRule(
            "text",
            f"It is not a valid RE2 expression: {said}. RE2 has no backreferences and no "
            "look-around.",
        ) from None
    if found.programsize > LARGEST_PROGRAM and rule.kind == "pattern":
        raise BadRule("text", "It is too large. Use smaller repetitions, or several rules.")
    return found


def words_in(text: str) -> list[str]:
    """The words of a rule, one a line."""
    return list(dict.fromkeys(word for line in text.splitlines() if (word := line.strip())))


def masked_by(rules: Sequence[TeamRule], text: str, counts: dict[str, int]) -> str:
    """The text with the matches of all rules replaced, one rule after the other; adds to the
    counts by name."""
    data = before = text.encode("utf-8", "surrogatepass")
    for rule in rules:
        ranges = rule.ranges(data)
        if not ranges:
            continue
        counts[rule.name] = counts.get(rule.name, 0) + len(ranges)
        parts, last = [], 0
        for start, end in ranges:
            parts += [data[last:start], rule.replacement.encode()]
            last = end
        data = b"".join([*parts, data[last:]])
    return text if data is before else data.decode("utf-8", "surrogatepass")


@lru_cache(1_000)
def _compiled(kind: RuleKind, text: str) -> Any:
    options = re2.Options()
    # RE2 would log patterns, which may quote content, to stderr.
    options.log_errors = False
    options.max_mem = 4 << 20
    options.never_capture = True
    if kind == "words":
        options.longest_match = True
        options.case_sensitive = False
        text = "|".join(re2.escape(word) for word in words_in(text))
    else:
        text = f"(?m:{text})"
    return re2.compile(text.encode("utf-8", "replace"), options)


def _in_windows(found: Any, data: bytes, *, whole_words: bool) -> Iterator[tuple[int, int]]:
    done = 0
    for line in _LINES.finditer(data):
        first, last = line.span()
        if last - first <= WINDOW and found.search(data[first:last]) is None:
            continue
        start = first
        while start < last:
            stop = min(start + WINDOW, last)
            for begin, end in _in_window(found, data, start, stop, whole_words=whole_words):
                if end > done:
                    yield max(begin, done), end
                    done = end
            if stop == last:
                break
            # Halves overlap: a match on the border is whole in the next window.
            start = _code_point(data, stop - WINDOW // 2)


def _in_window(
    found: Any, data: bytes, start: int, stop: int, *, whole_words: bool
) -> list[tuple[int, int]]:
    text = data[start:stop]
    ranges: list[tuple[int, int]] = []
    for match in found.finditer(text):
        begin, end = match.span()
        if begin == end or whole_words and not _is_whole(data, start + begin, start + end):
            continue
        ranges.append((start + begin, _code_point(data, start + end)))
        if len(ranges) > MOST_MATCHES:
            return [(start, stop)]
    return ranges


def _is_whole(data: bytes, start: int, end: int) -> bool:
    """Whether no letter or digit continues a word on either side."""
    before = data[max(start - 4, 0) : start].decode("utf-8", "ignore")
    after = data[end : end + 4].decode("utf-8", "ignore")
    first, last = (
        data[start : start + 4].decode("utf-8", "ignore")[:1],
        data[max(end - 4, start) : end].decode("utf-8", "ignore")[-1:],
    )
    continues = before[-1:].isalnum() and first.isalnum()
    return not continues and not (after[:1].isalnum() and last.isalnum())


def _code_point(data: bytes, at: int) -> int:
    while at < len(data) and 0x80 <= data[at] < 0xC0:
        at += 1
    return at
