"""Unified line diffs in bounded time, anchored at lines that are unique on both sides."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

MOST_LINES = 20_000
"""Maximum lines compared per side, not counting a common prefix and suffix."""

DEPTH = 12
"""How deep gaps between anchors are searched for further anchors."""

CONTEXT = 3

Match = tuple[int, int, int]
"""Index in the old lines, index in the new lines, and the number of equal lines from there."""


def matches(old: Sequence[str], new: Sequence[str]) -> list[Match] | None:
    """Return runs of equal lines, in order (patience diff); None if there are too many lines.

    Takes O(n log n) on any input, where difflib is quadratic or worse: a gap without a line that is
    unique on both sides counts as replaced as a whole.
    """
    found: list[Match] = []
    waiting = [(0, len(old), 0, len(new), 0)]
    while waiting:
        a, a_end, b, b_end, depth = waiting.pop()
        start = a
        while a < a_end and b < b_end and old[a] == new[b]:
            a, b = a + 1, b + 1
        if a > start:
            found.append((start, b - (a - start), a - start))
        same = 0
        while a_end > a and b_end > b and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end, same = a_end - 1, b_end - 1, same + 1
        if same:
            found.append((a_end, b_end, same))
        if a == a_end or b == b_end or depth == DEPTH:
            continue
        if max(a_end - a, b_end - b) > MOST_LINES:
            return None
        anchors = _anchors(old[a:a_end], new[b:b_end])
        last = (a, b)
        for i, j in anchors:
            waiting.append((last[0], a + i, last[1], b + j, depth + 1))
            found.append((a + i, b + j, 1))
            last = (a + i + 1, b + j + 1)
        if anchors:
            waiting.append((last[0], a_end, last[1], b_end, depth + 1))
    return _joined(sorted(found))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest ascending sequence of lines that occur once in both."""
    here, there = Counter(old), Counter(new)
    places = {line: place for place, line in enumerate(new) if there[line] == 1}
    pairs = [(i, places[line]) for i, line in enumerate(old) if here[line] == 1 and line in places]
    ends: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(ends, j)
        before.append(tops[place - 1] if place else -1)
        ends[place : place + 1] = [j]
        tops[place : place + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = tops[-1] if tops else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _joined(found: list[Match]) -> list[Match]:
    joined: list[Match] = []
    for a, b, size in found:
        if joined and (joined[-1][0] + joined[-1][2], joined[-1][1] + joined[-1][2]) == (a, b):
            joined[-1] = (joined[-1][0], joined[-1][1], joined[-1][2] + size)
        else:
            joined.append((a, b, size))
    return joined


def unified(old: Sequence[str], new: Sequence[str], first: int) -> list[str] | None:
    """Return the hunks of a unified diff without file names; both sides count lines from `first`.

    None if there are too many lines; empty if the sides are equal.
    """
    found = matches(old, new)
    if found is None:
        return None
    hunks: list[str] = []
    changes = _changes(found, len(old), len(new))
    while changes:
        group = [changes.pop(0)]
        while changes and changes[0][0] - group[-1][1] <= 2 * CONTEXT:
            group.append(changes.pop(0))
        hunks.extend(_hunk(old, new, group, first))
    return hunks


Change = tuple[int, int, int, int]


def _changes(found: list[Match], old: int, new: int) -> list[Change]:
    changes = []
    a = b = 0
    for i, j, size in [*found, (old, new, 0)]:
        if (a, b) != (i, j):
            changes.append((a, i, b, j))
        a, b = i + size, j + size
    return changes


def _hunk(old: Sequence[str], new: Sequence[str], group: list[Change], first: int) -> list[str]:
    start = max(group[0][0] - CONTEXT, 0)
    lead = group[0][0] - start
    end = min(group[-1][1] + CONTEXT, len(old))
    from_new = group[0][2] - lead
    to_new = group[-1][3] + (end - group[-1][1])
    lines = [f"@@ -{start + first},{end - start} +{from_new + first},{to_new - from_new} @@"]
    place = start
    for a, a_end, b, b_end in group:
        lines.extend(f" {line}" for line in old[place:a])
        lines.extend(f"-{line}" for line in old[a:a_end])
        lines.extend(f"+{line}" for line in new[b:b_end])
        place = a_end
    lines.extend(f" {line}" for line in old[place:end])
    return lines
