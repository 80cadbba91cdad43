"""Steps of two sessions are aligned by what the model did: the same, reworded, changed, alone."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.align import AlignedStep, StepAction, actions, align
from tests.build import Talk


def _steps(*acts: str) -> list[StepAction]:
    """One step for each: "!words" says something, "Read a.py" calls a tool, "-" does nothing."""
    talk = Talk()
    talk.user("go")
    for act in acts:
        talk.respond()
        tool, _, argument = act.partition(" ")
        if act.startswith("!"):
            talk.say(act[1:])
        elif act != "-":
            talk.result(talk.call(tool, {"command": argument}), "done")
    return actions(talk.blocks)


def _written(rows: list[AlignedStep]) -> list[str]:
    return [f"{row.op} {row.a or ''}|{row.b or ''}" for row in rows]


@pytest.mark.parametrize(
    ("a", "b", "rows"),
    [
        ([], [], []),
        (["Bash ls"], [], ["a 1|"]),
        ([], ["Bash ls"], ["b |1"]),
        (["Bash ls", "Bash pwd"], ["Bash ls", "Bash pwd"], ["same 1|1", "same 2|2"]),
        (["Bash ls"], ["Bash pwd"], ["a 1|", "b |1"]),
        # A step more in the middle moves the rest.
        (
            ["Bash ls", "Bash cat x", "Bash pwd"],
            ["Bash ls", "Bash pwd"],
            ["same 1|1", "a 2|", "same 3|2"],
        ),
        # The same two words of a command are the same operation with other arguments.
        (["Bash git commit -m one"], ["Bash git commit -m two words"], ["changed 1|1"]),
        # Other words of the same tool are paired if enough of them are common.
        (["Bash x=1 make all tests"], ["Bash y=2 make all tests"], ["changed 1|1"]),
        (["!I read the file now"], ["!I will read the file"], ["reworded 1|1"]),
        (["!I read the file"], ["!Nothing in common here"], ["a 1|", "b |1"]),
        (["!the same words"], ["!the same words "], ["same 1|1"]),
        (["!words"], ["Bash words"], ["a 1|", "b |1"]),
        # A step without calls and words is in no row.
        (["-", "Bash ls"], ["Bash ls"], ["same 2|1"]),
    ],
)  # fmt: skip
def test_rows(a: list[str], b: list[str], rows: list[str]) -> None:
    assert _written(align(_steps(*a), _steps(*b))) == rows


def test_the_order_of_arguments_does_not_matter() -> None:
    one, other = Talk(), Talk()
    for talk, given_in in ((one, {"a": 1, "b": 2}), (other, {"b": 2, "a": 1})):
        talk.respond()
        talk.call("Edit", given_in)
    assert _written(align(actions(one.blocks), actions(other.blocks))) == ["same 1|1"]


ACTS = st.lists(st.sampled_from(["Bash ls", "Bash ls -l", "Bash pwd", "!ok", "!ok then"]))


@given(ACTS, ACTS)
def test_every_step_has_one_row_in_order_and_as_many_as_possible_are_the_same(
    a: list[str], b: list[str]
) -> None:
    of_a, of_b = _steps(*a), _steps(*b)
    rows = align(of_a, of_b)
    assert [row.a for row in rows if row.a] == [one.step for one in of_a]
    assert [row.b for row in rows if row.b] == [one.step for one in of_b]

    @cache
    def longest(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return 0
        both = 1 + longest(i + 1, j + 1) if a[i] == b[j] else 0
        return max(both, longest(i + 1, j), longest(i, j + 1))

    assert sum(row.op == "same" for row in rows) == longest(0, 0)


def test_three_thousand_steps_without_an_equal_one_are_paired() -> None:
    def steps(mark: str) -> list[StepAction]:
        words = frozenset(["run", "tests", mark])
        return [StepAction(n, (f"{mark}{n}",), (mark,), ("Bash",), words) for n in range(1, 3001)]

    rows = align(steps("a"), steps("b"))
    assert len(rows) == 3000 and {row.op for row in rows} == {"changed"}
