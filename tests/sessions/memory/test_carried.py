"""What keeps the notes of a board in view."""

from __future__ import annotations

import pytest

from sessions.models import Note
from sessions.views.memory.carried import NoteRow, board_verdict

IN_CONTEXT, ON_BOARD, AT_RISK = (True, False), (False, True), (False, False)


def rows(*states: tuple[bool, bool]) -> list[NoteRow]:
    return [NoteRow(Note(), "", "", "", in_context=there, shown=shown) for there, shown in states]


@pytest.mark.parametrize(
    ("in_context", "shown", "state"),
    [(True, True, "context"), (True, False, "context"), (False, True, "board"),
     (False, False, "risk")],
)  # fmt: skip
def test_a_note_is_at_risk_if_neither_message_nor_board_carries_it(
    in_context: bool, shown: bool, state: str
) -> None:
    [row] = rows((in_context, shown))
    assert row.state == state


def test_the_verdict_counts_what_is_at_risk() -> None:
    found = board_verdict(rows(IN_CONTEXT, ON_BOARD, AT_RISK, AT_RISK))
    assert (found.tone, found.sentence) == ("bad", "2 of 4 notes shown at risk.")
    assert found.detail.endswith("1 note still in context; 1 on the board only.")
    calm = board_verdict(rows(IN_CONTEXT))
    assert (calm.tone, calm.detail) == ("good", "1 note still in context.")
