"""A log with other messages than are stored, and the log of a session that was recorded live."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from django.db import DataError

from compaction.tokens import counted
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import begin_import, run_import
from sessions.actions.record.append import LIVE, append
from sessions.importers import parse
from sessions.models import AuditEntry, Blob, ImportFile, Message, Session
from tests.sessions.imports.test_copied_calls import lines

pytestmark = [pytest.mark.django_db, pytest.mark.store]

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"


def imported(text: str, folder: Path, if_changed: IfChanged = IfChanged.KEEP) -> ImportFile:
    path = folder / "log.jsonl"
    path.write_text(text)
    run = begin_import(local_team(), [(str(path), str(path), 0)], job=None)
    run_import(run, counted, lambda done, total: None, if_changed)
    return run.files.get()


def texts(session: Session) -> list[str]:
    return [block.preview for block in session.blocks.order_by("position")]


@pytest.fixture
def stored(tmp_path: Path) -> Session:
    assert not imported(lines("run", ["msg_000000001", "msg_000000002"]), tmp_path).problems
    return Session.objects.get()


@pytest.fixture
def changed() -> str:
    """The log with another first question and answer, and one more of each."""
    grown = lines("run", ["msg_000000001", "msg_000000002", "msg_000000003"])
    return grown.replace("Question 0", "Question X").replace("Answer 0", "Answer X")


def test_what_is_stored_is_kept(stored: Session, changed: str, tmp_path: Path):
    file = imported(changed, tmp_path)
    assert file.problems == [
        "Session run: 2 messages differ from what is stored, at line 1 first. What is stored was "
        "kept."
    ]
    assert file.state == ImportFile.State.GROWN
    asked = [f"{kind} {n}" for n in range(3) for kind in ("Question", "Answer")]
    assert texts(stored) == asked


def test_one_message_differs(stored: Session, changed: str, tmp_path: Path):
    (problem,) = imported(changed.replace("Answer X", "Answer 0"), tmp_path).problems
    assert "1 message differs from what is stored, at line 1." in problem


def test_the_stored_session_is_replaced(stored: Session, changed: str, tmp_path: Path):
    file = imported(changed, tmp_path, IfChanged.REPLACE)
    assert file.problems[0].endswith("The log replaced the stored session.")
    session = Session.objects.get()
    assert (session.pk, texts(session)[:2]) == (stored.pk, ["Question X", "Answer X"])
    assert AuditEntry.objects.get(action="session.replaced").named == str(stored.pk)
    assert not [blob for blob in Blob.objects.all() if b"Question 0" in blob.data]
    assert imported(changed, tmp_path, IfChanged.REPLACE).state == ImportFile.State.KNOWN


def test_the_log_becomes_a_session_that_grows(stored: Session, changed: str, tmp_path: Path):
    file = imported(changed, tmp_path, IfChanged.NEW)
    assert file.problems[-1].endswith("The log is now session run.2.")
    assert "2 model calls of run.2 are in another session" in file.problems[0]
    again = imported(changed, tmp_path)
    assert (again.state, again.found) == (ImportFile.State.KNOWN, file.found)
    assert not [problem for problem in again.problems if "differ" in problem]
    other = changed.replace("Question X", "Question Y")
    assert "now session run.3" in imported(other, tmp_path, IfChanged.NEW).problems[-1]
    assert stored.messages.count() == 4


def test_a_log_becomes_only_so_many_sessions(
    stored: Session, changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A log that is always another is compared with each of them."""
    monkeypatch.setattr("sessions.actions.imports.changed.MOST_SESSIONS", 2)
    assert imported(changed, tmp_path, IfChanged.NEW).new_messages
    other = changed.replace("Question X", "Question Y")
    file = imported(other, tmp_path, IfChanged.NEW)
    assert "There are 2 sessions of this id already" in file.problems[-1]
    assert Session.objects.count() == 2


def test_the_longest_id_has_room_for_a_number(tmp_path: Path):
    name = "n" * 300
    text = lines("run", ["msg_000000001"]).replace('"run"', f'"{name}"')
    imported(text, tmp_path)
    imported(text.replace("Question 0", "Question X"), tmp_path, IfChanged.NEW)
    ids = set(Session.objects.values_list("external_id", flat=True))
    assert ids == {name, name[:298] + ".2"}


def test_an_id_that_no_column_holds_refuses_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise DataError("value too long for type character varying(300)")

    monkeypatch.setattr("sessions.actions.imports.changed.append_log", full)
    file = imported(lines("run", ["msg_000000001"]), tmp_path)
    assert file.state == ImportFile.State.REFUSED
    assert "at most 300 characters" in file.problems[0]


@pytest.mark.parametrize("choice", IfChanged)
def test_the_log_of_a_live_session(choice: IfChanged, tmp_path: Path):
    text = lines("run", ["msg_000000001"])
    (live,) = parse(text.encode(), "log.jsonl").sessions
    append(local_team(), live, counted, source=LIVE)
    problems = imported(text, tmp_path, choice).problems
    assert problems[-1].startswith("Session run was recorded live, from its model calls. The log ")
    sources = {one.external_id: one.source for one in Session.objects.all()}
    assert (
        sources
        == {
            IfChanged.KEEP: {"run": LIVE},
            IfChanged.REPLACE: {"run": "claude-code"},
            IfChanged.NEW: {"run": LIVE, "run.2": "claude-code"},
        }[choice]
    )
    assert Message.objects.count() == 2 * len(sources)


@pytest.mark.parametrize(
    "sample",
    [
        path
        for path in sorted(SAMPLES.rglob("*.jsonl"))
        if path.is_file() and path.parent.name != "contextlab-export"
    ],
    ids=lambda path: path.parent.name,
)
def test_a_log_that_grows_is_not_changed(sample: Path):
    data = sample.read_bytes().splitlines(keepends=True)
    found = []
    for end in (len(data) // 2, len(data), len(data)):
        for one in parse(b"".join(data[:end]), sample.name).sessions if end else ():
            named = replace(one, external_id=one.external_id or "named", former_ids=())
            found.append(append(local_team(), named, counted, source="log"))
    assert found
    assert not any(one.other_lines for one in found)
