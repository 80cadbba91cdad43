"""Positions as ranges: the sources of a summary of many blocks, in a few numbers."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[range, ...]
"""Positions as the fewest ascending ranges."""


def ranges_of(places: Iterable[int]) -> Ranges:
    """Build ranges from positions in any order."""
    return joined(range(place, place + 1) for place in places)


def joined(parts: Iterable[range]) -> Ranges:
    """Merge ranges, none of them empty; the work depends on the number of ranges only."""
    made: list[range] = []
    for one in sorted(parts, key=_start):
        if made and one.start <= made[-1].stop:
            made[-1] = range(made[-1].start, max(made[-1].stop, one.stop))
        else:
            made.append(one)
    return tuple(made)


def _start(one: range) -> int:
    return one.start
