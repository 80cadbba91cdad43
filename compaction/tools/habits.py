"""Which tool follows which, counted over past sessions, to suggest the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

WITHIN = 3
"""Steps within which one tool counts as following another (our choice)."""

OWN = 5
"""Weight of a session's own steps relative to those of other sessions (our choice, measured:
docs/tools/tools.md, Recommendations)."""


MOST = 64
"""Tools of a step that are counted (our choice): a step with more is no habit."""

KNOWN = 256
"""Tools of a session that are counted, the first ones (our choice): what is kept of a session stays
small, whatever names it made up."""


class Likely(NamedTuple):
    """A tool that may come next, and its share of what followed in similar places."""

    tool: str
    share: float


@dataclass(slots=True)
class Habits:
    """Counts of tool uses and successions.

    `uses` counts the steps that used a tool, `follows` the steps within `WITHIN` of them that used
    another, by distance in steps; a repeated use of one tool counts too.
    """

    uses: Counter[str] = field(default_factory=Counter)
    follows: dict[str, list[Counter[str]]] = field(default_factory=dict)

    def add(self, other: Habits, times: int = 1) -> None:
        """Add the habits of other sessions, weighted."""
        self.uses.update({tool: count * times for tool, count in other.uses.items()})
        for tool, ways in other.follows.items():
            for mine, theirs in zip(self._ways(tool), ways, strict=False):
                mine.update({after: count * times for after, count in theirs.items()})

    def _ways(self, tool: str) -> list[Counter[str]]:
        if tool not in self.follows:
            self.follows[tool] = [Counter() for _ in range(WITHIN)]
        return self.follows[tool]

    def learn(self, before: Sequence[Collection[str]], now: Collection[str]) -> None:
        """Add a step: the tools it used, and those of the steps before it, oldest first."""
        new = KNOWN - len(self.uses)
        tools = sorted(set(now) & self.uses.keys())
        tools = [*tools, *sorted(set(now) - self.uses.keys())[:new]][:MOST]
        self.uses.update(tools)
        for distance, earlier in enumerate(reversed(before[-WITHIN:])):
            for tool in sorted(set(earlier) & self.uses.keys())[:MOST]:
                self._ways(tool)[distance].update(tools)

    def pairs(self, tool: str) -> Counter[str]:
        """Return what followed a tool within `WITHIN` steps, and how often."""
        found: Counter[str] = Counter()
        for way in self.follows.get(tool, ()):
            found.update(way)
        return found

    def after(self, tool: str) -> Counter[str]:
        """Return what the next step used after a tool, and how often: at most as often as the tool
        itself."""
        ways = self.follows.get(tool)
        return ways[0].copy() if ways else Counter()

    def stored(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "uses": dict(self.uses),
            "follows": {tool: [dict(way) for way in ways] for tool, ways in self.follows.items()},
        }


def habits_of(steps: Iterable[Collection[str]]) -> Habits:
    """Count the habits of one session: the tools of each of its steps, in order.

    Linear in the uses.
    """
    made, before = Habits(), list[Collection[str]]()
    for now in steps:
        if now:
            made.learn(before, now)
            before = [*before, now][-WITHIN:]
    return made


def read(stored: Mapping[str, Any]) -> Habits:
    """Restore habits from `stored`."""
    follows = {
        tool: [Counter(way) for way in ways] for tool, ways in stored.get("follows", {}).items()
    }
    return Habits(Counter(stored.get("uses", {})), follows)


def likely(habits: Habits, before: Sequence[Collection[str]], most: int = 3) -> list[Likely]:
    """Return the most likely tools of the next step, after the steps before it (oldest first).

    Each tool of the last `WITHIN` steps votes with the shares of what followed it at that distance,
    nearer ones with more weight; if nothing is known of them, all uses vote. Ties are broken by
    frequency, then by name.
    """
    votes: dict[str, float] = {}
    for distance, earlier in enumerate(reversed(before[-WITHIN:])):
        for tool in set(earlier):
            way = habits.follows.get(tool, [Counter()] * WITHIN)[distance]
            for other, count in way.items():
                vote = count / max(habits.uses[tool], 1) / 4**distance
                votes[other] = votes.get(other, 0.0) + vote
    votes = votes or {tool: float(count) for tool, count in habits.uses.items()}
    whole = sum(votes.values()) or 1
    ranked = sorted(votes, key=lambda tool: (-votes[tool], -habits.uses[tool], tool))
    return [Likely(tool, votes[tool] / whole) for tool in ranked[:most]]


def only(habits: Habits, tools: Collection[str]) -> Habits:
    """Return the habits as far as they are about these tools."""
    made = Habits(Counter({tool: count for tool, count in habits.uses.items() if tool in tools}))
    for tool, ways in habits.follows.items():
        if tool in tools:
            made.follows[tool] = [
                Counter({other: count for other, count in way.items() if other in tools})
                for way in ways
            ]
    return made


def unused(defined: Iterable[str], habits: Habits) -> list[str]:
    """Return the tools that were offered but never used, in order."""
    return [tool for tool in dict.fromkeys(defined) if not habits.uses[tool]]
