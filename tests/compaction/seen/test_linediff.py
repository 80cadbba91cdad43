"""Unified diffs: right for all lines, and in time for hostile ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.seen.linediff import MOST_LINES, matches, unified


def _patched(old: list[str], hunks: list[str]) -> list[str]:
    """A plain reader of unified diffs."""
    new: list[str] = []
    place = 0
    for row in hunks:
        found = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", row)
        if found:
            start = int(found.group(1)) - 1
            new += old[place:start]
            place = start
        elif row[0] == "+":
            new.append(row[1:])
        else:
            assert old[place] == row[1:]
            place += 1
            new += [row[1:]] if row[0] == " " else []
    return new + old[place:]


_TEXT = st.lists(st.sampled_from("abcdefg}"), max_size=40)


@given(_TEXT, _TEXT)
@settings(max_examples=300)
def test_a_diff_makes_the_new_lines_of_the_old_ones(old: list[str], new: list[str]) -> None:
    hunks = unified(old, new, 1)
    assert hunks is not None
    assert _patched(old, hunks) == new
    assert (hunks == []) == (old == new)
    for a, b, size in matches(old, new) or []:
        assert old[a : a + size] == new[b : b + size]


@pytest.mark.fault("F12")
def test_hostile_lines_are_compared_in_bounded_time() -> None:
    many = MOST_LINES + 10
    assert unified(["a"] * 19_000, ["b", *["a"] * 19_000, "c"], 1)
    assert unified(["a", "b"] * 9_000, ["b", "c"] * 9_000, 1)
    assert unified([str(n) for n in range(19_000)], [str(n) for n in range(19_000, 0, -1)], 1)
    assert unified([f"a{n}" for n in range(many)], [f"b{n}" for n in range(many)], 1) is None
