"""Tries without a lost text: calls that guess another value in its place, or search for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.facts.facts import OUTSIDE, RUN, texts_by_name
from compaction.losses.looks import looks
from compaction.seen.reading import READING, reads
from compaction.seen.ripening import SHOWS

_NUMBER = re.compile(
    r"(?:(?<![A-Za-z_])([A-Za-z_]{3,40})[\"']?[ =:]{1,3}[\"']?)?(?<![\w.])(\d{2,12})(?![\w.])"
)
"""A number of two or more digits, with the word before it: port 8417, PORT=8417, --port 8417."""
_WORD = re.compile(r"[a-z_]{3,40}")
_FILE = re.compile(r"[\w-]+\.[A-Za-z]\w{0,7}")
"""A file's name alone."""


@dataclass(frozen=True, slots=True)
class Tries:
    """The steps of model calls before a text was shown again, each once: `guesses` failed with
    another value of its kind, `searches` looked for it, and `between` two of them one step lies
    that changed no file."""

    guesses: tuple[int, ...] = ()
    searches: tuple[int, ...] = ()
    between: tuple[int, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """All of them, in order."""
        return tuple(sorted({*self.guesses, *self.searches, *self.between}))


def tries_of(text: str, holders: Iterable[Block], came: Iterable[Block]) -> Tries:
    """Find the tries in blocks that came while a text was missing.

    `holders` are blocks that show the text, and which words precede its number. A failed call
    guesses if it holds another number after one of these words or with as many digits, or
    another path with the same name, or reads one in the same folder. A call that only reads and
    searches does so for the text, for a word before its number, or for the name of its path (our
    choices). Linear in the texts.
    """
    wanted = _Wanted.of(text, holders)
    blocks = list(came)
    failed = {one.tool_call for one in blocks if one.type == "tool_result" and one.error}
    guesses, searches, changed, called = set[int](), set[int](), set[int](), set[int]()
    for use in blocks:
        if use.type != "tool_use":
            continue
        step = max(use.born - 1, 1)
        called.add(step)
        if use.file is not None and use.file.action in ("write", "edit", "delete"):
            changed.add(step)
        elif wanted.is_searched(use):
            searches.add(step)
        elif use.tool_call in failed and wanted.is_guessed(use):
            guesses.add(step)
    tried = sorted(guesses | searches)
    between = {
        one + 1 for one, other in zip(tried, tried[1:], strict=False) if other == one + 2
    } & (called - changed)
    return Tries(tuple(sorted(guesses)), tuple(sorted(searches - guesses)), tuple(sorted(between)))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What makes a call a try: the text, its numbers with the words before them, and its paths."""

    text: str
    numbers: frozenset[str]
    words: frozenset[str]
    paths: frozenset[str]

    @classmethod
    def of(cls, text: str, holders: Iterable[Block]) -> _Wanted:
        numbers = frozenset(number for _, number in _numbers("", text))
        paths = frozenset(_paths(text))
        words = {word for word, _ in _numbers("", text)}
        for block in holders if numbers else ():
            for name, held in texts_by_name(block):
                words |= {word for word, number in _numbers(name, held) if number in numbers}
        return cls(text.lower(), numbers, frozenset(words - {""}), paths)

    def is_guessed(self, use: Block) -> bool:
        """Whether a call holds another value of the kind of the text, and not the text."""
        texts = texts_by_name(use)
        if any(self.text in one.lower() for _, one in texts):
            return False
        return any(
            self._is_other_number(name, text) or self._is_other_path(text, read=looks(use))
            for name, text in texts
        )

    def _is_other_number(self, name: str, text: str) -> bool:
        lengths = {len(number) for number in self.numbers}
        return bool(lengths) and any(
            number not in self.numbers
            # Of a number that is a whole argument, only the name of the argument counts.
            and (word in self.words or (len(number) in lengths and number != text))
            for word, number in _numbers(name, text)
        )

    def _is_other_path(self, text: str, *, read: bool) -> bool:
        names = {_name(path) for path in self.paths}
        folders = {_folder(path) for path in self.paths if read} - {""}
        return bool(names) and any(
            path not in self.paths and (_name(path) in names or _folder(path) in folders)
            for path in _paths(text)
        )

    def is_searched(self, use: Block) -> bool:
        """Whether a call only searches, and for one of the words that lead to the text."""
        if not looks(use) or not reads(use, READING) or reads(use, SHOWS):
            return False
        whole = {self.text, *(_name(path).lower() for path in self.paths)}
        held = [text.lower() for _, text in texts_by_name(use)]
        return any(
            any(one in text for one in whole) or not self.words.isdisjoint(_WORD.findall(text))
            for text in held
        )


def _numbers(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The numbers of a text with the word before each, else the argument's name, in lower case."""
    for match in _NUMBER.finditer(text):
        yield (match[1] or (name if match[0] == text else "")).lower(), match[2]


def _paths(text: str) -> set[str]:
    found = {run.strip(OUTSIDE) for run in RUN.findall(text)}
    return {one for one in found if "/" in one or _FILE.fullmatch(one)}


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0]
