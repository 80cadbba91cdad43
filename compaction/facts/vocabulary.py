"""Find names, paths and numbers again in texts that write them in other forms."""

from __future__ import annotations

import re
from typing import Literal

from compaction.facts.facts import OUTSIDE, RUN, is_fact

FactKind = Literal["error", "path", "url", "identifier", "number"]

LONGEST = 200
"""Characters from which a run counts as data rather than a name."""

DEEPEST = 12
"""Path components compared, counted from the end."""

SHORT = 4
"""Minimum characters of a token; shorter parts of a name are ignored."""

INSIDE = 8
"""Minimum characters of a part that stands on its own inside a longer name."""

_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LINES = re.compile(r":\d")
_OF_LINES = "0123456789:-"
_PARTS = re.compile(r"[.:@-]")
_DIGITS = re.compile(r"\d{4,}")  # as many as make a fact
# At most four repeats: longer numbers are not written in groups. Without backtracking.
_GROUPED = re.compile(r"\b\d{1,3}(?:[,_'\u2019\u00a0\u202f]\d{3}){1,4}\b")
_ESCAPES = re.compile(r"\\[nrt]")


def normal(fact: str) -> str:
    """Normalize a fact for comparison: lowercase, and a path without line numbers."""
    bare = fact.strip(OUTSIDE).casefold()
    # A number after a host is a port, which is part of the fact.
    if "://" in bare or not ("/" in bare or "." in bare):
        return bare
    path = bare.rstrip(_OF_LINES)
    lines = _LINES.search(bare, len(path))
    return bare if lines is None else bare[: lines.start()]


def kind_of(fact: str) -> FactKind:
    """Classify a fact by its form. A slash between two plain words does not make a path."""
    if fact.startswith(("http://", "https://")):
        return "url"
    if fact.isdecimal():
        return "number"
    head, slash, name = fact.rpartition("/")
    if slash and ("/" in head or "." in name or "_" in name):
        return "path"
    return "identifier"


def is_name(token: str) -> bool:
    """Return whether an identifier is a name rather than prose like IMPORTANT, Pre-Existing or
    and/or.
    """
    return any(
        part.strip("_") and ("_" in part or _mixed(part) or _humped(part))
        for part in token.replace("/", "-").replace(".", "-").replace(":", "-").split("-")
    )


def _mixed(part: str) -> bool:
    return any(letter.isdecimal() for letter in part) and not part.isdecimal()


def _humped(part: str) -> bool:
    """Return whether a capital follows a lowercase letter."""
    return any(a.islower() and b.isupper() for a, b in zip(part, part[1:], strict=False))


class Vocabulary:
    """The facts in a set of texts. Adding is linear in the text; a lookup in the fact's length."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._whole: set[str] = set()
        self._endings: set[str] = set()
        self._pieces: set[str] = set()
        self._inner: set[str] = set()
        self._folders: set[str] = set()

    def add(self, text: str) -> None:
        """Add a text, also with its escape sequences read as blanks."""
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
        """Return whether a text names a fact.

        That is: verbatim; a path by its last two or more components; a folder by a path below it;
        an identifier also by its parts or inside a longer one.
        """
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
        """Return whether a known path has this folder; a dot in the name makes it a file."""
        bare = "." not in ends[0].rpartition("/")[2]
        return bare and not self._folders.isdisjoint(ends)

    def knows(self, fact: str, kind: FactKind) -> bool:
        """Return whether the texts name a fact or each of its components."""
        if self.names(fact, kind):
            return True
        if kind not in ("path", "url"):
            return False
        token = normal(fact)
        return self._all((token.partition("://")[2] or token).split("/"))

    def holds(self, token: str) -> bool:
        """Return whether a normalized token occurs, by itself or inside a longer one."""
        return token in self._pieces

    def _all(self, pieces: list[str]) -> bool:
        long = [piece for piece in pieces if len(piece) >= SHORT]
        return bool(long) and self._pieces.issuperset(long)


def inner_names(name: str) -> list[str]:
    """Return the parts of a name with eight or more letters, split at underscores and capitals."""
    parts = list(_HUMP.finditer(name))[:DEEPEST]
    if len(parts) < 2:
        return []
    found = (name[a.start() : b.end()] for i, a in enumerate(parts) for b in parts[i:])
    return [one.casefold() for one in found if len(one) >= INSIDE]


def endings(components: list[str]) -> list[str]:
    """Return the proper suffixes of a path with two or more components."""
    return ["/".join(components[i:]) for i in range(1, len(components) - 1)]
