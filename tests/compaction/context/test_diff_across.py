"""Two runs of one session against each other, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.diff import StepContext, across

REPLACEMENT = 4

Entry = tuple[int, int, int, int, int, int]
"""position, flags, from, to, edit, closed; every entry is ten tokens of kind `position % 3`."""


def context(entries: list[Entry], step: int, texts: dict[tuple[int, int], str] | None = None):
    names = ("position", "flags", "from", "to", "edit", "closed")
    columns: dict[str, list[int]] = {
        name: [entry[place] for entry in entries] for place, name in enumerate(names)
    }
    columns["kind"] = [entry[0] % 3 for entry in entries]
    columns["tokens"] = [10] * len(entries)
    return StepContext(columns, step, REPLACEMENT, texts or {})


def original(position: int, start: int = 1, end: int = 0, closed: int = 0) -> Entry:
    return (position, 0, start, end, 0, closed)


def made(position: int, start: int, edit: int, end: int = 0, closed: int = 0) -> Entry:
    return (position, REPLACEMENT, start, end, edit, closed)


def answer(a: StepContext, b: StepContext) -> list[tuple[Any, ...]]:
    rows = across(a, b, lambda tokens: tokens)
    return [(row.op, row.a, row.b, row.revision, row.of) for row in rows]


KEPT = [original(0), original(3), original(6)]
STUBBED = [original(0), original(3, end=5, closed=2), made(3, 5, 2), original(6)]
GONE = [original(0), original(3, end=5, closed=2), original(6)]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (KEPT, KEPT, [("same", [0, 1, 2], [0, 1, 2], 0, "b")]),
        (
            KEPT, STUBBED,
            [("same", [0], [0], 0, "b"), ("replaced", [1], [2], 2, "b"),
             ("same", [2], [3], 0, "b")],
        ),
        (
            STUBBED, KEPT,
            [("same", [0], [0], 0, "b"), ("replaced", [2], [1], 2, "a"),
             ("same", [3], [2], 0, "b")],
        ),
        (
            KEPT, GONE,
            [("same", [0], [0], 0, "b"), ("removed", [1], [], 2, "b"), ("same", [2], [2], 0, "b")],
        ),
        (
            GONE, KEPT,
            [("same", [0], [0], 0, "b"), ("added", [], [1], 2, "a"), ("same", [2], [2], 0, "b")],
        ),
        ([], KEPT, [("added", [], [0, 1, 2], 0, "b")]),
        (KEPT, [], [("removed", [0, 1, 2], [], 0, "b")]),
    ],
)  # fmt: skip
def test_what_each_run_did_names_its_revision(
    a: list[Entry], b: list[Entry], expected: list[tuple[Any, ...]]
):
    assert answer(context(a, 9), context(b, 9)) == expected


def test_replacements_are_the_same_where_they_say_the_same():
    texts = {(3, 2): "sha"}
    a, b = context(STUBBED, 9, texts), context(STUBBED, 9, texts)
    assert [row[0] for row in answer(a, b)] == ["same"]
    b = context(STUBBED, 9, {(3, 2): "another"})
    assert [row[0] for row in answer(a, b)] == ["same", "replaced", "same"]


def test_each_side_has_a_step_of_its_own():
    assert [row[0] for row in answer(context(STUBBED, 4), context(STUBBED, 9))] == [
        "same", "replaced", "same",
    ]  # fmt: skip
    assert [row[0] for row in answer(context(KEPT, 9), context(STUBBED, 4))] == ["same"]


entries = st.lists(
    st.tuples(
        st.integers(0, 8), st.sampled_from((0, REPLACEMENT)), st.integers(1, 9),
        st.integers(0, 12), st.integers(0, 3), st.integers(0, 3),
    ).map(lambda one: one if not one[3] or one[3] > one[2] else (*one[:3], 0, *one[4:])),
    max_size=24,
).map(sorted)  # fmt: skip


@given(a=entries, b=entries, steps=st.tuples(st.integers(1, 12), st.integers(1, 12)))
def test_every_entry_that_stands_is_in_one_row_of_its_side(
    a: list[Entry], b: list[Entry], steps: tuple[int, int]
):
    def stands(of: list[Entry], step: int) -> list[int]:
        return [i for i, e in enumerate(of) if e[2] <= step and (e[3] == 0 or step < e[3])]

    rows = across(context(a, steps[0]), context(b, steps[1]), lambda tokens: tokens)
    assert sorted(i for row in rows for i in row.a) == stands(a, steps[0])
    assert sorted(i for row in rows for i in row.b) == stands(b, steps[1])
    assert sum(row.tokens_a for row in rows) == 10 * len(stands(a, steps[0]))
    for row in rows:
        assert (bool(row.a), bool(row.b)) == {
            "same": (True, True), "replaced": (True, True),
            "removed": (True, False), "added": (False, True),
        }[row.op]  # fmt: skip
        if row.op == "same":
            assert [a[i][0] for i in row.a] == [b[i][0] for i in row.b]
