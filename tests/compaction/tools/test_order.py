"""Which tools usually run before which."""

from __future__ import annotations

from compaction.tools.habits import habits_of
from compaction.tools.order import LEVELS, MOST_BEFORE, RanBefore, levels, ran_before


def order(*sessions: str) -> list[RanBefore]:
    """The edges of sessions, given as a letter per step."""
    made = habits_of([])
    for steps in sessions:
        made.add(habits_of(list(steps)))
    return ran_before(made, sorted(made.uses))


def test_what_comes_before_is_drawn_before_with_its_count() -> None:
    assert order("ab", "ab") == [RanBefore("a", "b", 2)]
    assert order("ab", "ba") == []
    assert order("ab", "ab", "ba") == [RanBefore("a", "b", 2)]


def test_a_rare_predecessor_is_left_out() -> None:
    assert order("ab", *["b"] * 5) == []
    assert order("ab", *["b"] * 4) == [RanBefore("a", "b", 1)]


def test_a_tool_has_few_predecessors_and_there_are_no_cycles() -> None:
    found = order("abcd", "abcd")
    assert sum(edge.after == "d" for edge in found) == MOST_BEFORE
    circle = order("ab", "ab", "ab", "bc", "bc", "ca")
    assert {(edge.tool, edge.after) for edge in circle} == {("a", "b"), ("b", "c")}


def test_a_level_is_the_longest_path_up_to_the_last() -> None:
    chain = [RanBefore("a", "b", 1), RanBefore("b", "c", 1), RanBefore("a", "c", 1)]
    assert levels(chain, "abcd") == {"a": 0, "b": 1, "c": 2, "d": 0}
    long = [RanBefore(one, other, 1) for one, other in zip("abcde", "bcdef", strict=True)]
    assert levels(long, "abcdef")["f"] == LEVELS - 1
