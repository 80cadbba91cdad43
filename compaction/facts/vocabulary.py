"""Names, paths and numbers that texts hold, found again in the forms that other texts give them."""

from __future__ import annotations

import re
from typing import Literal

from compaction.facts.facts import OUTSIDE, RUN, is_fact

FactKind = Literal["error", "path", "url", "identifier", "number"]

LONGEST = 200
"""Characters from which on a run is data, not a name."""

DEEPEST = 12
"""Components of a path, from its end, that are compared."""

SHORT = 4
"""Characters below which a part of a name says nothing: runs of fewer are no tokens."""

INSIDE = 8
"""Characters from which on a part of a longer name names what is called so."""

_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LINES = re.compile(r":\d[\d:-]*$")
_PARTS = re.compile(r"[.:@-]")
_DIGITS = re.compile(r"\d{4,}")  # as many as make a fact
# Four repeats at most: nothing longer is written in groups, and nothing is tried twice.
_GROUPED = re.compile(r"\b\d{1,3}(?:[,_'\u2019\u00a0\u202f]\d{3}){1,4}\b")
_ESCAPES = re.compile(r"\\[nrt]")


def normal(fact: str) -> str:
    """The form in which facts are compared: no case, and a path without its line numbers."""
    bare = fact.strip(OUTSIDE).casefold()
    # After a host a number is a port, and says something of its own.
    if "://" in bare or not ("/" in bare or "." in bare):
        return bare
    return _LINES.sub("", bare)


def kind_of(fact: str) -> FactKind:
    """What a fact is, by its form alone. A slash between two plain words makes no path."""
    if fact.startswith(("http://", "https://")):
        return "url"
    if fact.isdecimal():
        return "number"
    head, slash, name = fact.rpartition("/")
    if slash and ("/" in head or "." in name or "_" in name):
        return "path"
    return "identifier"


def is_name(token: str) -> bool:
    """Whether an identifier is no word of prose, as IMPORTANT, Pre-Existing and and/or are."""
    return any(
        part.strip("_") and ("_" in part or _mixed(part) or _humped(part))
        for part in token.replace("/", "-").replace(".", "-").replace(":", "-").split("-")
    )


def _mixed(part: str) -> bool:
    return any(letter.isdecimal() for letter in part) and not part.isdecimal()


def _humped(part: str) -> bool:
    """Whether a capital follows a small letter."""
    return any(a.islower() and b.isupper() for a, b in zip(part, part[1:], strict=False))


class Vocabulary:
    """What texts hold. Adding is linear in them; a look-up takes time of the fact's length only."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._whole: set[str] = set()
        self._endings: set[str] = set()
        self._pieces: set[str] = set()
        self._inner: set[str] = set()
        self._folders: set[str] = set()

    def add(self, text: str) -> None:
        """Take in a text, and what it says where its escapes are read as blanks."""
        self._take(set(RUN.findall(text)))
        if "\\" in text:
            self._take(set(RUN.findall(_ESCAPES.sub(" ", text))))
        for number in _GROUPED.findall(text):
            self._pieces.add("".join(filter(str.isdecimal, number)))

    @property
    def anything(self) -> bool:
        """Whether any text had a name, a path or a number that counts as a fact."""
        return any(is_fact(token.strip(OUTSIDE)) for token in self._seen)

    def _take(self, runs: set[str]) -> None:
        for run in runs - self._seen:
            self._seen.add(run)
            if len(run.strip(OUTSIDE)) <= LONGEST:
                self._note(normal(run))
                for part in _PARTS.split(run.rpartition("/")[2]):
                    self._inner.update(inner_names(part))

    def _note(self, token: str) -> None:
        self._whole.add(token)
        components = token.split("/")[-DEEPEST:]
        self._endings.update(endings(components))
        for end in range(2, len(components)):
            self._folders.update("/".join(components[i:end]) for i in range(end - 1))
        for component in components:
            self._pieces.add(component)
            self._pieces.update(_PARTS.split(component))
        self._pieces.update(_DIGITS.findall(token))

    def names(self, fact: str, kind: FactKind) -> bool:
        """Whether a text names a fact: as it stands, a path by an end of two components or
        more, a folder by a path below it, an identifier also by its parts or inside a longer."""
        token = normal(fact)
        if token in self._whole or token in self._pieces:
            return True
        if kind == "identifier":
            return token in self._inner or self._all(_PARTS.split(token.replace("/", ".")))
        if kind == "url":
            token = token.partition("://")[2]
            return token in self._endings or token in self._whole
        if kind == "number" or token in self._endings:
            return kind == "path"
        ends = endings(token.split("/")[-DEEPEST:])
        return any(end in self._whole for end in ends) or self._has_folder([token, *ends])

    def _has_folder(self, ends: list[str]) -> bool:
        """Whether one is a folder of a path; a file is none, by the dot in its name."""
        bare = "." not in ends[0].rpartition("/")[2]
        return bare and not self._folders.isdisjoint(ends)

    def knows(self, fact: str, kind: FactKind) -> bool:
        """Whether a fact can be made from the texts: they name it, or each component of it."""
        if self.names(fact, kind):
            return True
        if kind not in ("path", "url"):
            return False
        token = normal(fact)
        return self._all((token.partition("://")[2] or token).split("/"))

    def holds(self, token: str) -> bool:
        """Whether a token in its normal form stands somewhere, as such or inside a longer one."""
        return token in self._pieces

    def _all(self, pieces: list[str]) -> bool:
        long = [piece for piece in pieces if len(piece) >= SHORT]
        return bool(long) and self._pieces.issuperset(long)


def inner_names(name: str) -> list[str]:
    """Names of eight letters and more inside a longer one, between its underscores and humps."""
    parts = list(_HUMP.finditer(name))[:DEEPEST]
    if len(parts) < 2:
        return []
    found = (name[a.start() : b.end()] for i, a in enumerate(parts) for b in parts[i:])
    return [one.casefold() for one in found if len(one) >= INSIDE]


def endings(components: list[str]) -> list[str]:
    """What a path ends with, of two components or more, without the path itself."""
    return ["/".join(components[i:]) for i in range(1, len(components) - 1)]
