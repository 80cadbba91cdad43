"""Importing files: by command, again, after they grew, and when they are no logs."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction import tokens
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assess import assess_session
from sessions.actions.assessments.assessments import assessment_due
from sessions.actions.imports.imports import begin_import, files_under, report, run_import
from sessions.models import Block, ImportFile, Message, Session, SkippedRecord

pytestmark = [pytest.mark.django_db, pytest.mark.store]

SAMPLES = Path(__file__).parents[1] / "importers" / "samples"
GROWING = [path for path in sorted(SAMPLES.rglob("*.jsonl")) if path.stem != "contextlab-export"]
CLAUDE_CODE = SAMPLES / "claude-code" / "claude-code.jsonl"


def imported(*paths: Path) -> dict[str, Any]:
    out = StringIO()
    call_command("import_logs", *map(str, paths), json=True, stdout=out)
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def test_every_sample_is_imported_and_reported():
    result = imported(SAMPLES)
    assert [file["path"] for file in result["files"]] == [
        str(path) for path in files_under([SAMPLES])
    ]
    assert {file["state"] for file in result["files"]} <= {"new", "grown"}
    assert result["sessions"] == sum(file["sessions"] for file in result["files"])
    assert result["messages"] == Message.objects.count()
    for stored in Session.objects.all():
        assert stored.message_count == stored.messages.count()
        assert stored.step_count == stored.calls.count()
        assert stored.runs.get().columns, "measured"


def test_calls_that_a_log_completes_are_assessed_again():
    log = SAMPLES / "codex-rollout" / "codex.jsonl"
    imported(log)
    stored = Session.objects.get()
    assess_session(stored)
    imported(log)
    assert not assessment_due(stored), "nothing was new"
    stored.calls.filter(step=1).update(model="")  # as if an older release had not read it
    imported(log)
    assert assessment_due(stored)
    assert stored.calls.get(step=1).model == "gpt-5.5"


def test_importing_twice_changes_nothing():
    imported(SAMPLES)
    before = Message.objects.count(), Block.objects.count()
    again = imported(SAMPLES)
    assert (Message.objects.count(), Block.objects.count()) == before
    assert again["new_messages"] == 0
    assert {file["state"] for file in again["files"]} == {"known"}


@pytest.mark.parametrize("path", GROWING, ids=lambda path: path.stem)
def test_a_log_imported_line_by_line_is_the_log_imported_whole(path: Path, tmp_path: Path):
    lines = path.read_bytes().splitlines(keepends=True)
    growing = tmp_path / path.name
    for cut in range(1, len(lines) + 1):
        growing.write_bytes(b"".join(lines[:cut]))
        run = begin_import(local_team(), [(path.name, str(growing), 1)], job=None)
        run_import(run, tokens.counted, lambda done, total: None)
    rows = list(Block.objects.order_by("session__external_id", "position").values_list(
        "session__external_id", "position", "born", "sha"
    ))  # fmt: skip
    Session.objects.all().delete()
    imported(path)
    assert rows == list(Block.objects.order_by("session__external_id", "position").values_list(
        "session__external_id", "position", "born", "sha"
    ))  # fmt: skip


def test_what_is_no_log_is_refused_with_a_sentence_and_the_rest_goes_on(tmp_path: Path):
    shutil.copy(CLAUDE_CODE, tmp_path / "a.jsonl")
    (tmp_path / "notes.txt").write_text("Just some notes.")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    result = imported(tmp_path)
    states = {Path(file["path"]).name: file["state"] for file in result["files"]}
    assert states == {
        "a.jsonl": "new", "notes.txt": "refused", "empty.jsonl": "refused",
        "picture.png": "refused",
    }  # fmt: skip
    assert all(file["problems"] for file in result["files"] if file["state"] == "refused")


def test_a_log_without_messages_has_none_yet_and_is_new_with_its_first(tmp_path: Path):
    log = tmp_path / "a.jsonl"
    whole = CLAUDE_CODE.read_bytes()
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    for _ in range(2):
        assert [file["state"] for file in imported(log)["files"]] == ["empty"]
    out = StringIO()
    call_command("import_logs", str(log), stdout=out)
    assert out.getvalue().startswith(f"no messages yet {log}  claude-code: 0 sessions")
    assert not Session.objects.exists()
    log.write_bytes(whole)
    assert [file["state"] for file in imported(log)["files"]] == ["new"]


@pytest.mark.fault("I4")
def test_bad_lines_are_kept_and_counted(tmp_path: Path):
    log = CLAUDE_CODE.read_bytes() + b'{"type":"user","mess\n{"type":"new thing","a":1}\n'
    (tmp_path / "a.jsonl").write_bytes(log)
    result = imported(tmp_path)
    kept = {row.reason: row for row in SkippedRecord.objects.exclude(reason="not context")}
    assert kept["malformed"].count == 1
    assert (kept["unknown"].type, kept["unknown"].count) == ("new thing", 1)
    assert len(kept["unknown"].lines) == 1
    assert result["skipped"] == sum(row.count for row in SkippedRecord.objects.all())


def test_a_file_that_disappears_is_refused(tmp_path: Path):
    run = begin_import(local_team(), [("gone.jsonl", str(tmp_path / "gone.jsonl"), 5)], job=None)
    run_import(run, tokens.counted, lambda done, total: None)
    file = ImportFile.objects.get()
    assert file.state == ImportFile.State.REFUSED
    assert report(run)["files"] == [file_row(file)]


UNREADABLE = (
    "The file cannot be read: No such file or directory. Check that it exists and is readable."
)


def file_row(file: ImportFile) -> dict[str, Any]:
    return {
        "path": "gone.jsonl", "format": "", "state": "refused", "sessions": 0, "messages": 0,
        "new_messages": 0, "calls": 0, "usage_calls": 0, "tool_calls": 0, "compactions": 0,
        "skipped": 0, "problems": [UNREADABLE],
    }  # fmt: skip


@pytest.mark.parametrize(("names", "code"), [(["nowhere"], 2), (["empty"], 2), (["notes.txt"], 1)])
def test_exit_codes_say_what_went_wrong(names: list[str], code: int, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no log")
    with pytest.raises(CommandError) as raised:
        call_command("import_logs", *[str(tmp_path / n) for n in names], stdout=StringIO())
    assert raised.value.returncode == code


def test_what_is_there_is_imported_when_another_path_is_missing():
    with pytest.raises(CommandError, match="No such file or folder: nowhere") as raised:
        call_command("import_logs", str(CLAUDE_CODE), "nowhere", stdout=StringIO())
    assert raised.value.returncode == 1


def test_paths_are_those_of_the_folder_where_the_command_runs(db, monkeypatch):
    monkeypatch.chdir(CLAUDE_CODE.parent.parent)
    relative = CLAUDE_CODE.relative_to(CLAUDE_CODE.parent.parent)
    out = StringIO()
    call_command("import_logs", str(relative), json=True, stdout=out)
    assert {one["state"] for one in json.loads(out.getvalue())["files"]} <= {"new", "empty"}
    assert Session.objects.count() == 1


def test_what_an_import_left_unmeasured_the_next_one_measures(monkeypatch: pytest.MonkeyPatch):
    def dies(session: Session) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("sessions.actions.assessments.assess.measure_imported", dies)
        with pytest.raises(KeyboardInterrupt):
            imported(CLAUDE_CODE)
    assert not Session.objects.get().measured
    assert imported(CLAUDE_CODE)["new_messages"] == 0
    stored = Session.objects.get()
    assert stored.measured
    assert stored.runs.get().columns
