"""Which facts stand in which block alone: what a context no longer holds once that block leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.context import Block
from compaction.facts.facts import OUTSIDE, RUN, facts_of

LONGEST = 36
"""Code points from which on a fact is left out: its tokens grow, needs of it do not. Of 235 facts
that recorded agents needed once their block had left, 220 are shorter, of 19,645 facts that left
13,088; bare numbers are left out too: two of 1,145 were needed."""

LEAST_LISTED = 150
"""Code points of names that a stub may list however short the text was."""


@dataclass(slots=True)
class Holders:
    """By fact how many standing blocks hold it, by position the facts of what stands there.

    It follows from what stands alone, however it came to stand. Work is linear in the text of
    what comes and goes.
    """

    held: dict[int, frozenset[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def open(self, block: Block) -> None:
        """A block stands from now on."""
        found = self.held[block.position] = _worth(block)
        for fact in found:
            self._counts[fact] = self._counts.get(fact, 0) + 1

    def close(self, block: Block) -> None:
        """A block stands no more."""
        for fact in self.held.pop(block.position):
            count = self._counts[fact] = self._counts[fact] - 1
            if not count:
                del self._counts[fact]

    def lists(self, leaving: Sequence[tuple[Block, Block]], share: float) -> dict[int, str]:
        """By position the names that the stubs of leaving blocks list, best first.

        Of each block its original is given too. Listed are facts that nothing holds any more,
        each once, as many as fit into a share of the text: those first that the text repeats most
        for their length.
        """
        going = Counter(fact for now, _ in leaving for fact in self.held[now.position])
        told: set[str] = set()
        made: dict[int, str] = {}
        for now, original in leaving:
            mine = self.held[now.position] if now.id == original.id else _worth(original)
            free = [f for f in mine - told if self._counts.get(f, 0) == going[f]]
            room = max(int(share * original.chars), LEAST_LISTED) if share else 0
            chosen = _fitting(original.text, free, room)
            told.update(chosen)
            if chosen:
                made[now.position] = " ".join(chosen)
        return made


def _worth(block: Block) -> frozenset[str]:
    return frozenset(fact for fact in facts_of(block) if _is_worth(fact))


def _is_worth(fact: str) -> bool:
    return len(fact) < LONGEST and not fact.isdecimal()


def _fitting(text: str, names: Sequence[str], room: int) -> list[str]:
    """Names in the order of their worth, as far as there is room."""
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
