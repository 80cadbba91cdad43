"""Logs named on the command line: which are read and skipped, and messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError

from sessions import importers
from sessions.management.logs import fullest, sessions_at
from tests.sessions.lab.test_calibrate import write_log


def ids(path: Path) -> tuple[list[str], list[str]]:
    """Sessions at a path, and messages written meanwhile."""
    said: list[str] = []
    return [one.id for one in sessions_at(path, said.append)], said


def test_a_folder_gives_its_logs_and_passes_over_the_rest(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write_log(tmp_path / "deep" / "s.jsonl")
    (tmp_path / "notes.txt").write_text("no log")
    assert ids(tmp_path) == (["s"], [])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none", "There is no file or folder called"),
        ("empty", "contains no files"),
        ("notes.txt", "notes.txt: The file is neither JSON nor JSONL."),
        ("zero", "zero: The file is empty."),
        ("binary", "binary: The file is binary"),
    ],
)
def test_what_is_named_and_is_no_log_is_one_sentence(
    tmp_path: Path, name: str, sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "zero").write_bytes(b"")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(CommandError) as problem:
        ids(tmp_path / name)
    assert sentence in str(problem.value)
    assert problem.value.returncode == 2


def test_what_cannot_be_read_ends_a_named_file_and_is_said_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "a.jsonl")
    write_log(tmp_path / "b.jsonl")
    whole = Path.read_bytes

    def refusing(path: Path) -> bytes:
        if path.name == "a.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", refusing)
    found, said = ids(tmp_path)
    assert found == ["s"]
    assert said == [f"{tmp_path}/a.jsonl cannot be read: Permission denied. It was skipped."]
    with pytest.raises(CommandError, match="cannot be read: Permission denied") as problem:
        ids(tmp_path / "a.jsonl")
    assert problem.value.returncode == 1


def test_a_log_that_is_too_large_is_said_whether_named_or_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "a.jsonl")
    monkeypatch.setattr("sessions.management.logs.FILE_LIMIT", 100)
    found, said = ids(tmp_path)
    assert (found, len(said)) == ([], 1)
    with pytest.raises(CommandError, match="100"):
        ids(tmp_path / "a.jsonl")


def test_of_two_logs_of_one_session_the_fuller_is_taken(tmp_path: Path) -> None:
    write_log(tmp_path / "s.jsonl")
    lines = (tmp_path / "s.jsonl").read_text().splitlines(keepends=True)
    for name, kept in (("a", lines[:-2]), ("b", lines), ("c", lines[:-1])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.jsonl").write_text("".join(kept))
    (tmp_path / "s.jsonl").unlink()
    [one] = fullest(sessions_at(tmp_path, print))
    whole = importers.parse("".join(lines).encode(), "s.jsonl").sessions[0]
    assert one.length == len(whole.records)
