"""What shares rest on, rendered: well-formed, within its budget, with whole references."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from compaction.board.board import BoardNote, BoardSize, element, render
from compaction.board.shared import MARK, RESULTS, Shared, notes_in, rests_on
from tests.build import rough

TEXT = st.text(st.sampled_from("ab<&>\"'\n ]é文"), max_size=60)
NOTES = st.lists(
    st.builds(
        BoardNote, st.sampled_from(["plan", "agent", "knowledge"]), TEXT, st.uuids().map(str), TEXT
    ),
    max_size=20,
).map(lambda notes: [BoardNote("task", "Find it.", "task"), *notes])
RESULT = st.tuples(st.integers(0, 99).map(lambda n: f"share:1:m{n}.0@ab12cd34"), TEXT)
SHARES = st.lists(
    st.builds(
        lambda number, agent, notes, results: Shared(
            f"share:{number}", agent, _board(notes), tuple(results)
        ),
        st.integers(1, 9), TEXT, NOTES, st.lists(RESULT, max_size=8),
    ),
    max_size=8,
)  # fmt: skip


def _board(notes: list[BoardNote]) -> str:
    return render(notes, BoardSize(), rough).text


@given(SHARES, st.integers(0, 600))
def test_it_is_well_formed_and_keeps_its_budget(shares: list[Shared], most: int) -> None:
    text = rests_on(shares, most, rough)
    assert rests_on(shares, most, rough) == text
    if not text:
        return
    assert rough(text) <= most
    assert text.startswith(f"{MARK}\n")
    ElementTree.fromstring(f"<all>{text.removeprefix(MARK)}</all>")
    refs = {ref for share in shares for ref, _ in share.results} | {one.ref for one in shares}
    found = re.findall(r'^<(?:share|result) ref="([^"]*)"', text, re.MULTILINE)
    assert found and set(found) <= refs
    whole = {note for share in shares for note in notes_in(share.board)}
    shown = [line for line in text.split("\n") if line.startswith("<task>")]
    assert set(shown) <= whole


@given(NOTES)
def test_a_board_is_split_into_its_notes(notes: list[BoardNote]) -> None:
    assert notes_in(_board(notes)) == [element(note, 1_600) for note in notes]
    assert notes_in("") == []


def test_references_come_before_notes_and_new_before_old() -> None:
    notes = [BoardNote("knowledge", f"fact {number} " * 9, str(number)) for number in range(9)]
    board = _board([BoardNote("task", "Find it.", "task"), *notes])
    shares = [
        Shared(f"share:{n}", "a", board, tuple((f"share:{n}:m{m}.0", "Bash") for m in range(9)))
        for n in (2, 1)
    ]
    few, many = rests_on(shares, 80, rough), rests_on(shares, 300, rough)
    assert few.count("<share ") == 1 and 'ref="share:2"' in few
    assert "<knowledge>" not in few
    assert many.count("<result ") == 2 * RESULTS
    assert many.index('ref="share:2"') < many.index('ref="share:1"')
    assert "<task>Find it.</task>" in many and "fact 8" in many and "fact 0" not in many
