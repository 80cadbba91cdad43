"""Positions as ranges without gaps: what a summary of many blocks tells of, in a few numbers."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[range, ...]
"""Positions, ascending, as the fewest ranges that hold them."""


def ranges_of(places: Iterable[int]) -> Ranges:
    """These positions, in whatever order they are given."""
    return joined(range(place, place + 1) for place in places)


def joined(parts: Iterable[range]) -> Ranges:
    """All positions of some ranges, none of them empty; work grows with the ranges alone."""
    made: list[range] = []
    for one in sorted(parts, key=_start):
        if made and one.start <= made[-1].stop:
            made[-1] = range(made[-1].start, max(made[-1].stop, one.stop))
        else:
            made.append(one)
    return tuple(made)


def _start(one: range) -> int:
    return one.start
