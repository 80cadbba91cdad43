"""Mentions: what originals name, how they relate to the task, and when the agent used them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.facts.facts import COMMON, facts, texts_of
from compaction.seen.people import is_said
from compaction.topic.terms import terms_of

WHOLE = 1_000_000
"""Relevance of a word or name that one group alone mentions. An integer, because the order of a
set differs between processes, and with it a sum of fractions."""

LEAST_USES = 20
"""Uses from which their distances say something about a session (our choice)."""

FARTHEST = 256
"""Steps from which distances count as equal."""


@dataclass(slots=True)
class Mentions:
    """The words and names in each original, and the uses of what tools showed.

    A use is a fact in a tool's input that an earlier input or result holds; it counts for the
    newest of them, and facts in more than `COMMON` originals do not count. Learned when asked, only
    from originals, so that it is the same after a restart. Work is linear in the text that is new.
    """

    last: dict[int, int] = field(default_factory=dict)
    """By position, the newest step that used what a block shows."""
    _terms: dict[int, frozenset[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _holders: dict[str, Block] = field(default_factory=dict)
    """The newest input or result that holds a fact."""
    _distances: list[int] = field(default_factory=lambda: [0] * (FARTHEST + 1))
    _asked: list[int] = field(default_factory=list)
    """The positions of people's messages, ascending."""

    def learn(self, arrivals: Sequence[int], originals: Mapping[int, Block]) -> None:
        """Add the originals that arrived since; `arrivals` are the positions of all."""
        for place in range(len(self._terms), len(arrivals)):
            self._add(originals[arrivals[place]])

    def _add(self, block: Block) -> None:
        texts = texts_of(block)
        named = set().union(*map(facts, texts))
        terms = self._terms[block.position] = frozenset(named | terms_of(texts)[0])
        for term in terms:
            self._counts[term] = self._counts.get(term, 0) + 1
        if block.type in ("tool_use", "tool_result"):
            if block.type == "tool_use":
                self._use(block, named)
            self._holders.update(dict.fromkeys(named, block))
        elif block.type == "text" and block.kind == block.role == "user" and is_said(block.text):
            self._asked.append(block.position)

    def _use(self, call: Block, named: Iterable[str]) -> None:
        step = call.born - 1  # the output of a step is born at the next
        for held in {
            block.position: block
            for fact in named
            if (block := self._holders.get(fact)) is not None and self._counts[fact] <= COMMON
        }.values():
            before = self.last.get(held.position, held.born)
            if step > before:
                self._distances[min(step - before, FARTHEST)] += 1
                self.last[held.position] = step

    def relevance(self, groups: Sequence[Iterable[int]], before: int | None = None) -> list[int]:
        """Return what each group of positions has in common with the first and the newest message
        of a person (before a position).

        Each word or name that they share counts `WHOLE` / n, if n groups mention it. Depends on
        nothing that arrives later, so that a span stays the same while its summary is written.
        """
        end = len(self._asked) if before is None else bisect_left(self._asked, before)
        places = {*self._asked[: min(end, 1)], *self._asked[max(end - 1, 0) : end]}
        asked = frozenset[str]().union(*(self._terms[place] for place in places))
        held = [asked & self._mentioned(group) for group in groups]
        counts = Counter(term for terms in held for term in terms)
        return [sum(WHOLE // counts[term] for term in terms) for terms in held]

    def _mentioned(self, positions: Iterable[int]) -> set[str]:
        return set().union(*(self._terms[place] for place in positions))

    def reach(self, share: float) -> int | None:
        """Return the steps within which this share of uses followed the use before, or the arrival.

        At least so many: a power of √2, so that it changes rarely. None after few uses.
        """
        uses = sum(self._distances)
        if uses < LEAST_USES:
            return None
        steps = within = 0
        while within < share * uses and steps < FARTHEST:
            steps += 1
            within += self._distances[steps]
        halves = 0
        while 2 ** (halves / 2) < steps:
            halves += 1
        return round(2 ** (halves / 2))
