"""The cost of a loss: a text costs no more than its compaction, which costs no more than all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import FileRef
from compaction.context.edits import Entry
from compaction.losses.repairs import WINDOW, LossCost, loss_cost, repairs
from tests.build import Talk

TEXTS = ("one\ntwo\nthree", "two\nthree\nfour", "fatal: no such file", "x")
PEOPLE = ("Go on.", "No, that is wrong.")
Run = tuple[list[Entry], dict[int, int]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A session of reads, searches and edits that some revisions removed from its context."""
    talk = Talk()
    talk.user("Go.")
    for _ in range(draw(st.integers(2, 14))):
        talk.respond()
        tool = draw(st.sampled_from(("Read", "Grep", "Edit", "read_back")))
        path = draw(st.sampled_from("ab"))
        action = {"Read": "read", "Edit": "edit"}.get(tool)
        file = FileRef(path, action) if action else None  # type: ignore[arg-type]
        asked = (
            {"ref": draw(st.sampled_from(["b2", "b4"]))} if tool == "read_back" else {"of": path}
        )
        use = talk.call(tool, asked, file=file)
        talk.result(use, draw(st.sampled_from(TEXTS)), error=draw(st.booleans()))
        if draw(st.integers(0, 3)) == 0:
            talk.user(draw(st.sampled_from(PEOPLE)))
    steps = draw(st.lists(st.integers(2, talk.step + 1), unique=True, max_size=4))
    removals = dict(enumerate(sorted(steps), start=1))
    entries = []
    for block in talk.blocks:
        later = [one for one, step in removals.items() if step >= block.born]
        closed = draw(st.sampled_from([None, *later]))
        entries.append(Entry(block, block.born, removals.get(closed or 0), closed_by=closed))
    return entries, removals


costs = st.dictionaries(st.integers(1, 16), st.none() | st.integers(0, 500), max_size=16)


@given(run=runs(), paid=costs, breaks=st.dictionaries(st.integers(1, 16), st.integers(0, 200)))
def test_a_text_costs_no_more_than_its_revision_and_that_no_more_than_the_session(
    run: Run, paid: dict[int, int | None], breaks: dict[int, int]
) -> None:
    entries, removals = run
    of_all = {one.step for one in repairs(entries, removals)}
    session = loss_cost(of_all, paid, breaks)
    for number, step in removals.items():
        found = repairs(entries, {number: step})
        assert len({one.block.id for one in found}) == len(found), "each call once"
        of_one = {one.step for one in found}
        assert of_one <= of_all and all(step <= one < step + WINDOW for one in of_one)
        revision = loss_cost([one.step for one in found], paid, breaks)
        for missing in of_one:
            text = loss_cost([missing, missing], paid, breaks)
            assert (text.microusd or 0) <= (revision.microusd or 0) <= (session.microusd or 0)


@pytest.mark.parametrize(
    ("steps", "cost"),
    [
        ([], LossCost((), 0)),
        ([4, 2, 4], LossCost((2, 4), 70)),
        ([2, 3], LossCost((2, 3), 50, at_least=True)),
        ([3], LossCost((3,), None, at_least=True)),
        ([9], LossCost((9,), None, at_least=True)),
    ],
)
def test_each_step_counts_once_and_without_its_cache_break(
    steps: list[int], cost: LossCost
) -> None:
    paid = {2: 50, 3: None, 4: 100}
    assert loss_cost(steps, paid, {4: 80, 5: 7}) == cost


def test_what_was_read_back_was_removed() -> None:
    talk = Talk()
    talk.user("Go.")
    talk.respond()
    shown = talk.result(talk.call("Bash", {"command": "ls"}), TEXTS[0])
    talk.respond()
    use = talk.call("mcp__contextlab__read_back", {"ref": f"{shown.id}@ab12cd34"})
    talk.result(use, TEXTS[0])
    entries = [Entry(block, block.born) for block in talk.blocks]
    assert repairs(entries, {1: 2}) == ()
    entries[2] = Entry(shown, shown.born, 2, closed_by=1)
    [found] = repairs(entries, {1: 2})
    assert (found.kind, found.step, found.block) == ("repeat", 2, use)
    assert found.earlier is not None and json.loads(found.earlier.text) == {"command": "ls"}
