"""Find names, paths and numbers again in texts that write them in other forms."""

from __future__ import annotations

import re
from typing import Literal

from compaction.facts.facts import OUTSIDE, RUN, is_fact
from compaction.facts.paths import DEEPEST, ESCAPES, normal, paths_told, tells_of

FactKind = Literal["error", "path", "url", "identifier", "number"]

LONGEST = 200
"""Characters from which a run counts as data rather than a name."""

SHORT = 4
"""Minimum characters of a token; shorter parts of a name are ignored."""

INSIDE = 8
"""Minimum characters of a part that stands on its own inside a longer name."""

_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_PARTS = re.compile(r"[.:@-]")
_DIGITS = re.compile(r"\d{4,}")  # as many as make a fact
# At most four repeats: longer numbers are not written in groups. Without backtracking.
_GROUPED = re.compile(r"\b\d{1,3}(?:[,_'\u2019\u00a0\u202f]\d{3}){1,4}\b")


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
        self._paths: set[str] = set()
        self._starts: set[str] = set()
        self._pieces: set[str] = set()
        self._inner: set[str] = set()

    def add(self, text: str) -> None:
        """Add a text, also with its escape sequences read as blanks."""
        self._take(set(RUN.findall(text)))
        if "\\" in text:
            self._take(set(RUN.findall(ESCAPES.sub(" ", text))))
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
                if "/" in run:
                    written, starts = paths_told(run)
                    self._paths |= written
                    self._starts |= starts
                for part in _PARTS.split(run.rpartition("/")[2]):
                    self._inner.update(inner_names(part))

    def _note(self, token: str) -> None:
        self._whole.add(token)
        components = token.split("/")[-DEEPEST:]
        for component in components:
            self._pieces.add(component)
            self._pieces.update(_PARTS.split(component))
        self._pieces.update(_DIGITS.findall(token))

    def names(self, fact: str, kind: FactKind) -> bool:
        """Return whether a text names a fact.

        That is: verbatim; a path as `paths.tells` says; an identifier also by its parts or inside
        a longer one.
        """
        token = normal(fact)
        if token in self._whole or token in self._pieces:
            return True
        if tells_of(token, self._paths, self._starts):
            return True
        if kind == "identifier":
            return token in self._inner or self._all(_PARTS.split(token.replace("/", ".")))
        return kind == "url" and token.partition("://")[2] in self._pieces

    def knows(self, fact: str, kind: FactKind) -> bool:
        """Return whether the texts name a fact or each of its components."""
        if self.names(fact, kind):
            return True
        if kind not in ("path", "url"):
            return False
        token = normal(fact)
        return self._all((token.partition("://")[2] or token).split("/"))

    def holds(self, token: str) -> bool:
        """Return whether a normalized token occurs by itself."""
        return token in self._whole

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
