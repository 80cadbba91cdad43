"""The board: which entries it keeps, in how much room, and that no text breaks out of it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.board.board import (
    KINDS,
    MOST_ENTRIES,
    BoardNote,
    BoardSize,
    element,
    put,
    render,
    stamp,
)
from tests.build import rough

TEXTS = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("<>&\"'\0\ud800/")), max_size=300
)


@st.composite
def entries(draw: st.DrawFn) -> list[BoardNote]:
    made = []
    for number in range(draw(st.integers(0, 40))):
        made.append(
            BoardNote(
                draw(st.sampled_from(KINDS)),
                draw(TEXTS),
                str(number),
                agent=draw(TEXTS),
                task=draw(TEXTS),
                at=draw(st.one_of(st.none(), st.integers(-5, 10**17))),
                origin=draw(TEXTS),
                stale=draw(st.sampled_from(["", "src/a.py changed"])),
                untrusted=draw(st.booleans()),
            )
        )
    return made


@given(entries(), st.integers(1, 3_000))
def test_it_holds_to_its_budget_and_is_well_formed(listed: list[BoardNote], tokens: int) -> None:
    made = render(listed, BoardSize(tokens), rough)
    assert rough(made.text) <= tokens or not made.text
    assert made == render(listed, BoardSize(tokens), rough)
    if made.text:
        root = ElementTree.fromstring(made.text)
        assert len(root) == len(made.kept) <= len(listed)
    elif listed:
        assert tokens < 1_000, "one entry at least has room"


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 30)), max_size=60))
def test_an_entry_takes_the_place_of_another_of_its_key(drawn: list[tuple[str, int]]) -> None:
    board: dict[str, BoardNote] = {}
    for kind, key in drawn:
        put(board, BoardNote(kind, f"{kind} {key}", str(key)))  # type: ignore[arg-type]
    assert list(board) == list(dict.fromkeys(str(key) for _, key in drawn))


def test_of_too_many_the_oldest_goes_but_never_the_task() -> None:
    board: dict[str, BoardNote] = {}
    put(board, BoardNote("task", "do it", "task"))
    for number in range(MOST_ENTRIES + 10):
        put(board, BoardNote("agent", "found", str(number)))
    assert len(board) == MOST_ENTRIES
    assert list(board)[:2] == ["task", "11"]


def test_the_elements_are_those_of_the_source() -> None:
    at = 1_728_901_815_000
    assert element(BoardNote("task", "Log in <users> & more", "t")) == (
        "<task>Log in &lt;users&gt; &amp; more</task>"
    )
    assert element(BoardNote("plan", "1. design", "p", agent="coder")) == "<plan>1. design</plan>"
    assert element(BoardNote("agent", "bcrypt", "a", agent='co"der', at=at)) == (
        '<agent id="co&quot;der" time="2024-10-14 10:30:15">bcrypt</agent>'
    )
    assert element(BoardNote("task_done", "All done.", "d", task="login", at=at)) == (
        '<task_done_summary task="login" time="2024-10-14 10:30:15">All done.</task_done_summary>'
    )
    known = BoardNote(
        "knowledge", "HS256", "k", origin="api-agent", stale="jwt.py changed", untrusted=True
    )
    assert element(known) == (
        '<knowledge from="api-agent" trust="unchecked" stale="jwt.py changed">HS256</knowledge>'
    )


@pytest.mark.parametrize("at", [None, -1, 10**18])
def test_a_time_that_is_none_is_left_out(at: int | None) -> None:
    assert stamp(at) == ""


def test_entries_are_shortened_before_any_is_left_out() -> None:
    listed = [BoardNote("agent", f"{number} " + "word " * 200, str(number)) for number in range(12)]
    made = render(listed, BoardSize(2_000), rough)
    assert len(made.kept) == 12
    assert "…" in made.text


def test_many_entries_are_shortened_to_a_few_words_each() -> None:
    listed = [
        BoardNote(
            "agent", f"Found {number}: " + "word " * 90, str(number), agent="coder", at=10**12
        )
        for number in range(71)
    ]
    made = render(listed, BoardSize(2_000), rough)
    assert len(made.kept) == 71
    assert made.text.count('id="coder"') == 12, "the newest still say who and when"


def test_what_leaves_first() -> None:
    listed = [
        BoardNote("task", "t " * 300, "task"),
        BoardNote("plan", "old plan", "plan-1"),
        BoardNote("knowledge", "k " * 300, "stale", stale="a.py changed"),
        *(BoardNote("agent", f"{n} " + "w " * 300, f"a{n}") for n in range(6)),
        BoardNote("plan", "new plan", "plan-2"),
    ]
    left: list[str] = []
    for tokens in range(1_500, 40, -1):
        kept = render(listed, BoardSize(tokens), rough).kept
        left += [e.key for e in listed if e.key not in kept and e.key not in left]
    assert left == ["plan-1", "stale", "a0", "a1", "a2", "a3", "a4", "a5", "plan-2", "task"]


def test_a_board_without_entries_is_no_text() -> None:
    assert render([], BoardSize(), rough).text == ""
