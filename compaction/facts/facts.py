"""Facts: the names, paths and numbers that an agent reads in one step and needs in another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Set

from compaction.context.blocks import Block

COMMON = 10
"""A fact in more blocks of a session than this is noise, by definition of needed-later recall."""

SHORTEST = 6
SHORTEST_NUMBER = 4

# One character class and one quantifier: no backtracking, linear on any text. ASCII only, because
# Chinese and Japanese prose puts no blanks around a path.
RUN = re.compile(r"[A-Za-z0-9_./:@-]{4,}")
_TELLING = re.compile(r"[/_0-9A-Z]")
OUTSIDE = "./:@-"
LONGEST_START = 9
"""Code points before a fact in which the start of its path is looked for (our choice)."""

_PATH_START = re.compile(r"(?<![\w/.~-])(?:~?/|(?:\.\./){1,3}|\./)\Z")


def facts(text: str) -> set[str]:
    """Return the facts of a text.

    A fact is a token of 6 or more characters from ASCII letters, digits and `_ . / : @ -` that
    starts with a letter or underscore and has a `/`, a `_`, a digit or a capital after its first
    character; or a number of 4 or more digits. Punctuation at both ends is stripped first. The rule
    is fixed so that figures stay comparable (docs/sources.md, Needed-later recall).
    """
    return {token for run in set(RUN.findall(text)) if is_fact(token := run.strip(OUTSIDE))}


def is_fact(token: str) -> bool:
    """Return whether a run of characters, stripped of punctuation, is a fact."""
    if token.isdecimal():
        return len(token) >= SHORTEST_NUMBER
    if len(token) < SHORTEST or token[0].isdecimal():
        return False
    return token[0] == "_" or _TELLING.search(token, 1) is not None


def facts_of(block: Block) -> set[str]:
    """Return the facts of a block; for a tool call, those of its argument values.

    Argument names belong to the tool's schema, not to the agent's knowledge. An input that is not
    JSON counts as plain text.
    """
    return set().union(*(facts(text) for text in texts_of(block)))


def texts_of(block: Block) -> list[str]:
    """Return the texts of a block that can hold facts: its own, or each argument value of a tool
    call.
    """
    return [text for _, text in texts_by_name(block)]


def texts_by_name(block: Block) -> list[tuple[str, str]]:
    """Return the texts of a block with their argument names; empty names outside tool calls."""
    if block.type != "tool_use":
        return [("", block.text)]
    try:
        given = json.loads(block.text)
        named = given.items() if isinstance(given, dict) else [("", given)]
        return [(name, text) for name, value in named for text in _texts(value)]
    except (ValueError, RecursionError):
        return [("", block.text)]


def _texts(value: object) -> Iterator[str]:
    """Yield every string and number inside a JSON value; iterative, because the sender sets the
    depth.
    """
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(inner.values())
        elif isinstance(inner, list):
            waiting.extend(inner)
        elif isinstance(inner, str):
            yield inner
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield str(inner)


def as_written(fact: str, text: str) -> str:
    """Return a fact with the start of its path as a text writes it first: `/`, `~/`, `./`, `../`;
    the fact alone if the text has it without one."""
    start = text.find(fact)
    while start > 0:
        match = _PATH_START.search(text, max(0, start - LONGEST_START), start)
        if match is not None:
            return match.group() + fact
        if not (text[start - 1].isalnum() or text[start - 1] in "_/.-"):
            return fact
        start = text.find(fact, start + 1)
    return fact


class FactIndex:
    """Which blocks of a session hold which fact; built once and used for every policy.

    `holders` has up to `COMMON` blocks per fact, in order, and leaves out common facts. Work and
    memory are linear in the text.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.holders: dict[str, list[Block]] = {}
        self._facts: dict[str, set[str]] = {}
        common: set[str] = set()
        for block in blocks:
            mine = self._facts[block.id] = facts_of(block)
            for fact in mine - common:
                found = self.holders.setdefault(fact, [])
                found.append(block)
                if len(found) > COMMON:
                    common.add(fact)
                    del self.holders[fact]

    def held(self, block: Block) -> set[str]:
        """Return the facts of a block of the session that count."""
        return {fact for fact in self._facts[block.id] if fact in self.holders}

    def facts_of(self, block: Block) -> Set[str]:
        """Return the facts of a block; those of the session's are known."""
        found = self._facts.get(block.id)
        return found if found is not None else facts_of(block)
