"""Boards in the store: read off sessions once, shared by a task, kept clean, small and apart."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import tokens
from compaction.board.board import MOST_ENTRIES
from sessions.actions.accounts.teams import local_team
from sessions.actions.memory import boards
from sessions.actions.memory.boards import CannotNote, board_of, entries_of, put_note, remove
from sessions.actions.memory.gathering import gather
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import AuditEntry, Board, Gathering, Note, Session, Team
from tests.sessions.made import reads, result, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def uses(call: str, tool_call: str, tool: str, given: records.Json) -> records.Message:
    block = {"type": "tool_use", "id": tool_call, "name": tool, "input": given}
    return records.Message("assistant", [block], key=call, call=call)


def stored(
    *of: records.Record, name: str = "s1", team: Team | None = None, **columns: Any
) -> Session:
    made = append(
        team or local_team(), session(*of, external_id=name), tokens.counted, source="test"
    ).session
    if columns:
        Session.objects.filter(pk=made.pk).update(**columns)
        made.refresh_from_db()
    return made


WORK: list[records.Record] = [
    user("Mend the login, password=hunter2.", key="u1", at=1_728_901_815_000),
    reads("c1", "t1", "src/login.py", key="a1"),
    result("t1", "def login(): ...", key="r1"),
    says("c2", "It was the cookie.", key="a2"),
    user("And the logout?", key="u2"),
    says("c3", "Also mended.", key="a3"),
]


def answer(board: Board) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in entries_of(board)]


def test_a_session_is_read_once_and_its_secrets_are_masked() -> None:
    made = stored(*WORK)
    gather(made)
    board = board_of(made)
    assert answer(board) == [
        ("task", "Mend the login, password=[PASSWORD_1]"),
        ("agent", "Asked: Mend the login, password=[PASSWORD_1]\nAnswered: It was the cookie."),
        ("task_done", "Also mended."),
    ]
    assert board.notes.get(kind="task").at == 1_728_901_815_000
    ids = list(board.notes.values_list("pk", flat=True))
    gather(made)
    assert list(board.notes.values_list("pk", flat=True)) == ids


def test_in_parts_it_is_read_as_in_one() -> None:
    whole = stored(*WORK, name="whole")
    gather(whole)
    for count in range(1, len(WORK) + 1):
        part = stored(*WORK[:count], name="parts")
        gather(part)
    assert answer(board_of(whole)) == answer(board_of(part))
    assert Gathering.objects.get(session=part).blocks == part.block_count


def test_sessions_of_a_task_share_its_board_and_the_first_sets_the_task() -> None:
    one = stored(user("Do it.", key="a"), name="one", task="login")
    two = stored(user("You do the tests.", key="a"), *WORK[1:4], name="two", task="login")
    gather(one)
    gather(two)
    assert board_of(one) == board_of(two)
    assert answer(board_of(one)) == [("task", "Do it."), ("task_done", "It was the cookie.")]


def test_another_team_has_a_board_of_its_own() -> None:
    theirs = Team.objects.create(slug="theirs", name="Theirs")
    one = stored(user("Ours.", key="a"), task="login")
    two = stored(user("Theirs.", key="a"), team=theirs, task="login")
    gather(one)
    gather(two)
    assert answer(board_of(one)) == [("task", "Ours.")]
    assert answer(board_of(two)) == [("task", "Theirs.")]


def test_a_session_that_gets_a_task_tells_it_on_that_board() -> None:
    made = stored(*WORK)
    gather(made)
    Session.objects.filter(pk=made.pk).update(task="login")
    gather(made)
    board = Board.objects.get(kind="task", name="login")
    assert [kind for kind, _ in answer(board)] == ["task", "agent", "task_done"]


def test_what_is_put_there_by_hand_is_one_entry_per_key() -> None:
    made = stored(*WORK)
    one, new = put_note(made, "knowledge", "The port is 80.", key="port")
    two, again = put_note(made, "knowledge", "The port is 81, mail ann@acme.io.", key="port")
    assert (new, again, one.pk) == (True, False, two.pk)
    assert two.text == "The port is 81, mail [EMAIL_1]."
    _, new = put_note(made, "knowledge", "Same.")
    _, again = put_note(made, "knowledge", "Same.")
    assert (new, again) == (True, False)
    put_note(made, "task", "Another task.")
    gather(made)
    assert board_of(made).notes.get(kind="task").text == "Another task."


@pytest.mark.parametrize(
    ("kind", "text", "key", "field"),
    [
        ("plan", "x", "port", "/key"),
        ("knowledge", " \n", "", "/text"),
        ("knowledge", "x" * 4_001, "", "/text"),
    ],
)
def test_what_cannot_be_put_there(kind: str, text: str, key: str, field: str) -> None:
    made = stored(*WORK)
    put_note(made, "knowledge", "The port is 80.", key="port")
    with pytest.raises(CannotNote) as refused:
        put_note(made, kind, text, key=key)
    assert refused.value.field == field


def test_what_people_take_off_does_not_come_back() -> None:
    made = stored(*WORK)
    gather(made)
    remove(board_of(made).notes.get(kind="agent"))
    Gathering.objects.all().delete()
    gather(made)
    assert [kind for kind, _ in answer(board_of(made))] == ["task", "task_done"]
    assert not Note.objects.filter(text__contains="cookie", kind="agent").exists()
    assert AuditEntry.objects.filter(action="note.removed").count() == 1


def test_of_too_many_the_oldest_goes() -> None:
    made = stored(user("Do it.", key="a"))
    gather(made)
    board = board_of(made)
    Note.objects.bulk_create(
        Note(board=board, key=f"k{n}", kind="agent", text="x", by="code")
        for n in range(MOST_ENTRIES)
    )
    put_note(made, "knowledge", "one more")
    kept = board.notes.values_list("key", flat=True)
    assert len(kept) == MOST_ENTRIES
    assert "task" in kept and "k1" not in kept and "k2" in kept


def test_knowledge_is_stale_once_a_file_that_it_rests_on_changed() -> None:
    made = stored(*WORK)
    gather(made)
    put_note(made, "knowledge", "Login sets a cookie.", files={"src/login.py": ""})
    put_note(made, "knowledge", "Nothing to do with it.", files={"src/other.py": ""})
    given = {"file_path": "src/login.py", "old_string": "a", "new_string": "b"}
    made = stored(*WORK, uses("c9", "t9", "Edit", given), result("t9", "ok", key="r9"))
    gather(made)
    stale = dict(board_of(made).notes.filter(kind="knowledge").values_list("text", "stale"))
    assert stale == {
        "Login sets a cookie.": "src/login.py changed",
        "Nothing to do with it.": "",
    }


def test_what_a_project_shows_is_counted_once_per_session() -> None:
    def run(name: str, times: int) -> Session:
        calls: list[records.Record] = [user("go", key="u")]
        for n in range(times):
            calls.append(uses(f"c{n}", f"t{n}", "Bash", {"command": "pytest -q"}))
            calls.append(result(f"t{n}", "2 passed", key=f"r{n}"))
        return stored(*calls, name=name, meta={"cwd": "/srv/app"})

    for made in (run("one", 2), run("two", 3)):
        gather(made)
        Gathering.objects.all().delete()
        gather(made)
    board = Board.objects.get(kind="project")
    assert board.name == "/srv/app"
    assert answer(board) == [
        ("knowledge", "Tests run with: pytest -q (seen 5 times in 2 sessions)")
    ]


def test_a_board_can_be_rendered_for_a_session() -> None:
    made = stored(*WORK)
    gather(made)
    text = boards.rendered(made, board_of(made)).text
    assert text.startswith("<chat_board>\n<task>Mend the login")
    assert '<agent id="tester"' in text
