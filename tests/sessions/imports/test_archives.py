"""Archives and folders: each log in them has its row, and bounds are kept."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from compaction.tokens import counted
from sessions.actions.accounts.teams import local_team
from sessions.actions.imports import opened
from sessions.actions.imports.imports import begin_import, files_under, report, run_import
from sessions.importers import NotALog
from sessions.models import Session, Team

pytestmark = [pytest.mark.django_db, pytest.mark.store]

SAMPLES = Path(__file__).parent.parent / "importers/samples"


@pytest.fixture
def team(db: None) -> Team:
    return local_team()


PI = next((SAMPLES / "pi").glob("*.jsonl")).read_bytes()
EVENTS = (SAMPLES / "openhands-events/events.jsonl").read_text().splitlines()


def zipped(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def tarred(path: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    return path


def events() -> list[tuple[str, bytes]]:
    given = [json.loads(line) for line in EVENTS]
    return [
        (f"run-7/events/event-{one['number']:05d}-ab.json", json.dumps(one["event"]).encode())
        for one in given
    ]


def imported(team: Team, *paths: Path) -> list[tuple[str, str, int]]:
    """Path, state and sessions of each row, relative to the first path's folder."""
    files = [(str(path), str(path), 0) for path in files_under(paths)]
    run = begin_import(team, files, job=None)
    run_import(run, counted, lambda done, total: None)
    rows = report(run)["files"]
    assert isinstance(rows, list)
    root = f"{paths[0].parent}/"
    return [(row["path"].removeprefix(root), row["state"], row["sessions"]) for row in rows]


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_each_log_of_an_archive_has_its_row(
    pack: Callable[..., Path], team: Team, tmp_path: Path
) -> None:
    files = [
        ("a/one.jsonl", PI),
        ("../../escape.txt", b"no log"),
        ("__MACOSX/a/._one.jsonl", b"x"),
        (".git/config", b"x"),
        ("inner.zip", zipped(tmp_path / "inner.zip", [("x", PI)]).read_bytes()),
        *events(),
    ]
    path = pack(tmp_path / "logs.archive", files)
    assert imported(team, path) == [
        ("logs.archive/a/one.jsonl", "new", 1),
        ("logs.archive/../../escape.txt", "refused", 0),
        ("logs.archive/inner.zip", "refused", 0),
        ("logs.archive/run-7", "new", 1),
    ]
    assert [row[1] for row in imported(team, path)] == ["known", "refused", "refused", "known"]
    assert Session.objects.for_team(team).count() == 2
    assert not (tmp_path.parent / "escape.txt").exists()


def test_packed_files_of_one_name_are_all_imported(team: Team, tmp_path: Path) -> None:
    files = []
    for number in (1, 2, 3):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = PI.replace(b"pi-made-1", b"pi-made-%d" % number)
        (folder / "log.jsonl.gz").write_bytes(gzip.compress(log))
        tarred(folder / "logs.tar.gz", [("log.jsonl", log), ("log.jsonl", b"no log")])
        names = ("log.jsonl.gz", "logs.tar.gz")
        files += [(name, str(folder / name), 0) for name in names]
    run = begin_import(team, files, job=None)
    run_import(run, counted, lambda done, total: None)
    rows = report(run)["files"]
    assert isinstance(rows, list)
    assert sorted((row["path"], row["state"]) for row in rows) == [
        *[("log.jsonl.gz", "new")] * 3,
        *[("logs.tar.gz/log.jsonl", "known")] * 3,
        *[("logs.tar.gz/log.jsonl", "refused")] * 3,
    ]
    assert Session.objects.for_team(team).count() == 3


def test_a_packed_file_and_a_folder_of_events(team: Team, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(PI))
    for name, data in events():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    rows = imported(team, tmp_path)
    assert [row[1:] for row in rows] == [("new", 1), ("new", 1)]
    assert rows[1][0].endswith("run-7/events")
    packed = zipped(tmp_path / "same.zip", events())
    assert [row[1] for row in imported(team, packed)] == ["known"]


def test_an_evaluation_is_one_log(team: Team, tmp_path: Path) -> None:
    log = json.loads((SAMPLES / "inspect-log/log.json").read_text())
    samples = log.pop("samples")
    files = [("header.json", json.dumps(log).encode())]
    files += [("samples/1_epoch_2.json", json.dumps(samples[0]).encode())]
    files += [("summaries.json", b"[]")]
    path = zipped(tmp_path / "run.eval", files)
    assert imported(team, path) == [("run.eval", "new", 1)]


@pytest.mark.fault("I4")
def test_bounds_and_damage_are_named(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason(path: Path) -> str:
        (row,) = imported(team, path)
        assert row[1] == "refused"
        run = team.imports.order_by("-created").first()
        assert run is not None
        return str(run.files.get().problems[0])

    bomb = zipped(tmp_path / "bomb.zip", [("zeros.jsonl", b"0" * 5_000_000)])
    assert "unpacked" in reason(bomb)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 5_000_000))
    assert "unpacked" in reason(tmp_path / "bomb.gz")
    hidden = tarfile.TarInfo("hidden")
    hidden.size, hidden.type = 5_000_000, b"Z"  # an entry that is no file
    data = hidden.tobuf() + bytes(hidden.size)
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        (tmp_path / "bomb.tar").write_bytes(pack(data))
        assert "unpacked" in reason(tmp_path / "bomb.tar")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(PI)[:-20])
    assert "cannot be read" in reason(tmp_path / "cut.gz")
    whole = zipped(tmp_path / "whole.zip", [("a.jsonl", PI)]).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    assert "cannot be read" in reason(tmp_path / "cut.zip")
    assert "no files" in reason(zipped(tmp_path / "empty.zip", []))
    monkeypatch.setattr(opened, "MEMBER_LIMIT", 2)
    many = [(f"{place}.jsonl", PI) for place in range(4)]
    assert "more than 2 files" in reason(zipped(tmp_path / "many.zip", many))
    assert "more than 2 files" in reason(tarred(tmp_path / "many.tgz", many))
    monkeypatch.setattr(opened, "FILE_LIMIT", 10)
    with pytest.raises(NotALog, match="10"):
        opened.read_log(tmp_path / "cut.zip")


def test_an_interrupted_archive_goes_on(team: Team, tmp_path: Path) -> None:
    path = zipped(tmp_path / "logs.zip", [("a.jsonl", PI), ("b.txt", b"no log")])
    run = begin_import(team, [(str(path), str(path), 0)], job=None)

    def stop(text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_import(run, stop, lambda done, total: None)  # type: ignore[arg-type]
    run_import(run, counted, lambda done, total: None)
    assert sorted(run.files.values_list("state", flat=True)) == ["new", "refused"]
