"""Which tool follows which, counted step by step."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from compaction.tools.habits import KNOWN, MOST, WITHIN, Habits, habits_of, likely, read, unused

STEPS = [["read"], ["edit"], ["test"], ["read"], ["edit"], ["test", "lint"]]


def test_pairs_are_counted_within_a_few_steps() -> None:
    made = habits_of(STEPS)
    assert made.uses == {"read": 2, "edit": 2, "test": 2, "lint": 1}
    assert made.pairs("read") == {"edit": 2, "test": 2, "lint": 1, "read": 1}
    assert max(made.after("read").values()) <= made.uses["read"]
    assert made.after("unknown") == {}
    assert "read" not in habits_of([["read"], [], ["edit"]]).pairs("edit")


def test_the_likeliest_comes_first_and_shares_add_up() -> None:
    found = likely(habits_of(STEPS), [["read"]])
    assert found[0].tool == "edit"
    assert abs(sum(one.share for one in likely(habits_of(STEPS), [["read"]], most=9)) - 1) < 1e-9
    assert [one.tool for one in likely(habits_of(STEPS), [["never seen"]])][:1] == ["edit"]
    assert likely(Habits(), [["read"]]) == []


def test_offered_and_never_used_is_listed_in_order() -> None:
    assert unused(["z", "read", "a", "z"], habits_of(STEPS)) == ["z", "a"]


_STEPS = st.lists(st.lists(st.sampled_from("abcd"), max_size=3), max_size=12)


@given(_STEPS, _STEPS)
def test_habits_add_up_and_are_stored_whole(one: list[list[str]], two: list[list[str]]) -> None:
    a, b = habits_of(one), habits_of(two)
    both, other = Habits(), Habits()
    both.add(a)
    both.add(b)
    other.add(b)
    other.add(a)
    assert both == other
    assert read(json.loads(json.dumps(both.stored()))) == both
    assert all(len(ways) == WITHIN for ways in both.follows.values())


@given(_STEPS)
def test_order_inside_a_step_is_no_matter(steps: list[list[str]]) -> None:
    assert habits_of(steps) == habits_of([list(reversed(step)) for step in steps])


def test_invented_names_do_not_make_it_large() -> None:
    """A thousand new tools at each of thirty steps were 36 MB of JSON."""
    steps = [[f"tool {step}.{number}" for number in range(1_000)] for step in range(30)]
    made = habits_of([["read"], ["edit"], *steps, ["read"], ["edit"]])
    assert len(made.uses) == KNOWN
    assert made.pairs("read")["edit"] == 2, "what was known is counted on"
    assert all(len(way) <= MOST for ways in made.follows.values() for way in ways[:1])
    assert len(json.dumps(made.stored())) < 2_000_000
