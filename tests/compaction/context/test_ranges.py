"""Positions as ranges: the same positions, in the fewest ranges."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from compaction.context.ranges import joined, ranges_of

PARTS = st.lists(
    st.builds(lambda start, size: range(start, start + size), st.integers(0, 60), st.integers(1, 9))
)


@given(PARTS)
def test_joined_ranges_hold_the_same_positions_with_gaps_between(parts: list[range]) -> None:
    made = joined(parts)
    assert list(chain.from_iterable(made)) == sorted(set(chain.from_iterable(parts)))
    assert all(one.stop < two.start for one, two in zip(made, made[1:], strict=False))


@given(st.sets(st.integers(0, 60)))
def test_positions_come_back_as_they_were(places: set[int]) -> None:
    assert list(chain.from_iterable(ranges_of(places))) == sorted(places)
