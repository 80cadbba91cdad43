"""Count which blocks hold each fact, to find facts that a context loses when a block leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.facts.facts import OUTSIDE, RUN, facts_of
from compaction.facts.quoted import quoted

LONGEST = 36
"""Code points from which a fact is left out: longer facts cost more tokens and are needed less.

Of 235 facts that recorded agents needed after their block had left, 220 are shorter; of all 19,645
facts that left, only 13,088 are. Bare numbers are left out too: 2 of 1,145 were needed."""

LEAST_LISTED = 60
"""Code points of names that a stub may always list, however short the text."""


@dataclass(slots=True)
class Holders:
    """The number of blocks in the context per fact, and the facts per position.

    Depends on the blocks in the context only, not on their history. Work is linear in the text
    added and removed.
    """

    facts_of: Callable[[Block], Set[str]] = facts_of
    held: dict[int, Set[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def open(self, block: Block) -> None:
        """Add a block to the context."""
        found = self.held[block.position] = self.facts_of(block)
        for fact in found:
            self._counts[fact] = self._counts.get(fact, 0) + 1

    def close(self, block: Block) -> None:
        """Remove a block from the context."""
        for fact in self.held.pop(block.position):
            count = self._counts[fact] = self._counts[fact] - 1
            if not count:
                del self._counts[fact]

    def lists(self, leaving: Sequence[tuple[Block, Block]], share: float) -> dict[int, str]:
        """Return what the stubs of leaving blocks keep of them, by position: lines of readings of
        files, names of all others, best first.

        `leaving` pairs each block with its original. Only facts that no remaining block holds
        count, each once, as many as fit into `share` of the text; names that the text repeats
        often relative to their length come first.
        """
        going = Counter(fact for now, _ in leaving for fact in self.held[now.position])
        listed: set[str] = set()
        made: dict[int, str] = {}
        for now, original in leaving:
            mine = self.held[now.position] if now.id == original.id else self.facts_of(original)
            free = [
                fact
                for fact in mine - listed
                if self._counts.get(fact, 0) == going[fact] and _is_worth(fact)
            ]
            room = int(share * original.chars)
            if is_reading(original):
                kept, held = quoted(original, frozenset(free), room)
            else:
                chosen = _fitting(original.text, free, max(room, LEAST_LISTED))
                kept, held = " ".join(chosen), set(chosen)
            listed |= held
            if kept:
                made[now.position] = kept
        return made


def is_reading(block: Block) -> bool:
    """Return whether a block is text of a file that a tool read."""
    return block.type == "tool_result" and block.file is not None and block.file.action == "read"


def _is_worth(fact: str) -> bool:
    return len(fact) < LONGEST and not fact.isdecimal()


def _fitting(text: str, names: Sequence[str], room: int) -> list[str]:
    """Return the best names that fit into the room, in order."""
    if not names:
        return []
    often = Counter(run.strip(OUTSIDE) for run in RUN.findall(text))
    chosen = []
    for name in sorted(names, key=lambda name: (-often[name] / (len(name) + 4), name)):
        room -= len(name) + 1
        if room < 0:
            break
        chosen.append(name)
    return chosen
