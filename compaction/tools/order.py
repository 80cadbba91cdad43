"""Which tool usually runs before which, as a graph in levels, from habits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from compaction.tools.habits import Habits

SHARE = 0.2
"""Share of a tool's uses that a tool must run before, to be drawn before it (our choice)."""

MOST_BEFORE = 2
"""Most tools drawn before one (our choice)."""

LEVELS = 4
"""Most levels of a graph; what comes later stands on the last one."""


class RanBefore(NamedTuple):
    """A tool that ran before another within `habits.WITHIN` steps, and how often."""

    tool: str
    after: str
    times: int


def ran_before(habits: Habits, tools: Sequence[str]) -> list[RanBefore]:
    """Return the tools that usually come before others, without cycles, the most frequent first.

    Of two tools that follow each other, only the more frequent order counts.
    """
    pairs = {tool: habits.pairs(tool) for tool in tools}
    found = [
        (pairs[one][other] - pairs[other][one], RanBefore(one, other, pairs[one][other]))
        for one in tools
        for other in tools
        if one != other
        and pairs[one][other] > pairs[other][one]
        and pairs[one][other] >= SHARE * habits.uses[other]
    ]
    kept: list[RanBefore] = []
    for _, edge in sorted(found, key=lambda one: (-one[0], one[1])):
        before = sum(one.after == edge.after for one in kept)
        if before < MOST_BEFORE and not _leads(kept, edge.after, edge.tool):
            kept.append(edge)
    return sorted(kept, key=lambda one: (-one.times, one.tool, one.after))


def _leads(edges: Sequence[RanBefore], start: str, end: str) -> bool:
    """Return whether a path leads from one tool to another."""
    left, seen = [start], set[str]()
    while left:
        tool = left.pop()
        if tool == end:
            return True
        if tool not in seen:
            seen.add(tool)
            left += [edge.after for edge in edges if edge.tool == tool]
    return False


def levels(edges: Sequence[RanBefore], tools: Sequence[str]) -> dict[str, int]:
    """Return the number of tools on the longest path before each tool, below `LEVELS`."""
    found = dict.fromkeys(tools, 0)
    for _ in tools:
        for edge in edges:
            found[edge.after] = max(found[edge.after], min(found[edge.tool] + 1, LEVELS - 1))
    return found
