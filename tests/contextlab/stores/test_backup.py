"""Backups: what is backed up is restored, equal in every row, or nothing is."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contextlab.backup import archive, sqlite
from contextlab.backup.archive import BackupUnderway, Manifest, NotABackup
from contextlab.backup.backup import KEPT_BEFORE_MIGRATIONS as BACKUPS_KEPT
from tests import preloaded
from tests.conftest import ROOT, Server
from tests.contextlab.stores.separate_store import PostgresStore, SqliteStore, Store
from tests.faults.live_agent import Work
from tests.faults.store import in_data_dir

PIECE = 64 * 1024
SAMPLES = ROOT / "tests" / "sessions" / "importers" / "samples" / "claude-code"
OLD_STORE = Path(__file__).with_name("store_9ecb88f")
TABLES = ("session", "message", "block", "blob", "modelcall", "auditentry")

# Ends like kill -9 once so many pieces were copied: argv[1] of the program argv[2:].
DIES_AT = """
import os, sys
from contextlab import cli
from contextlab.backup import archive, postgres, sqlite
left = int(sys.argv[1])
sqlite.PIECE = postgres.PIECE = archive.PIECE = 64 * 1024

class Dying:
    def __init__(self):
        self.made = hashed()
    def update(self, data):
        global left
        left -= 1
        if left < 0:
            os._exit(137)
        self.made.update(data)
    def hexdigest(self):
        return self.made.hexdigest()

hashed, archive.sha256 = archive.sha256, Dying
cli.main(sys.argv[2:])
"""


def content(store: Store) -> dict[str, list[Any]]:
    """Rows of the tables that hold what agents sent, in the order of their text."""
    return {
        table: sorted(map(repr, store.query(f"SELECT * FROM agent_sessions_{table}")))
        for table in TABLES
    }


def filled(store: Store) -> dict[str, list[Any]]:
    """Fill a store with sessions; return its content."""
    store.migrate()
    assert store.run("import", str(SAMPLES))[0] == 0
    assert len((made := content(store))["message"]) > 30
    return made


@pytest.mark.fault("M2", "R1")
def test_a_backup_restores_every_row_or_nothing(
    stores: tuple[Store, Store], tmp_path: Path
) -> None:
    old, new = stores
    before = filled(old)
    place = tmp_path / "folder" / "backup.zip"
    for piece in (0, 1, 3):
        assert dying(old, piece, "backup", str(place)) == 137
        assert not place.exists()
    assert old.run("backup", str(place)) == (0, "")
    assert {file.name for file in place.parent.iterdir()} == {".backup.lock", "backup.zip"}
    assert old.run("backup", "--check", str(place)) == (0, "")
    old.query("DELETE FROM django_migrations WHERE name = '0019_words'")  # after the backup

    for piece in (0, 1, manifest(place)["bytes"] // PIECE):
        assert dying(new, piece, "restore", str(place)) == 137
    assert new.run("restore", str(place)) == (0, "")
    assert not list(new.folder.glob("*.restoring"))
    assert content(new) == before
    assert new.run("verify") == (0, "")
    assert new.schema() == old.schema()

    again = tmp_path / "again.zip"
    assert new.run("backup", str(again)) == (0, "")
    first, second = manifest(place), manifest(again)
    assert first["rows"] == second["rows"]
    if isinstance(new, PostgresStore):
        assert first["sums"] == second["sums"] and len(first["sums"]) > 30
    else:
        assert first["sha256"] == second["sha256"]

    # What is there is never overwritten.
    code, said = new.run("restore", str(place))
    assert code == 1 and said.startswith(("The database has tables.", str(new.folder)))
    code, said = new.run("backup", str(place))
    assert (code, said) == (2, f"{place} already exists. Choose another.\n")
    assert content(new) == before

    # A folder need not be there.
    folder = f"{tmp_path / 'nightly'}/"
    assert [new.run("backup", folder)[0] for _ in range(2)] == [0, 0]
    assert len(list(Path(folder).glob("*.zip"))) == 2


def test_a_backup_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    place = tmp_path / "backup.zip"
    fits = Manifest("sqlite", "1", archive.now(), ["agent_sessions.9999_later"], {})
    archive.write(place, fits, iter([b"store"]))
    code, said = SqliteStore(folder).run("restore", str(place))
    assert code == 1 and "made by a newer version" in said and "9999_later" in said
    archive.write(place, replace(fits, engine="postgresql", migrations=[]), iter([b"store"]))
    code, said = SqliteStore(tmp_path / "other").run("restore", str(place))
    assert code == 1 and "It is of postgresql" in said
    assert not (folder / "contextlab.sqlite3").exists()


def manifest(place: Path) -> dict[str, Any]:
    with zipfile.ZipFile(place) as file:
        return dict(json.loads(file.read("manifest.json")))


@pytest.mark.fault("M3", "R3", "R5")
def test_a_damaged_store_is_restored_and_not_beside_a_log(tmp_path: Path) -> None:
    old, new = SqliteStore(tmp_path / "old"), SqliteStore(tmp_path / "new")
    before = filled(old)
    place = tmp_path / "backup.zip"
    assert old.run("backup", str(place)) == (0, "")
    # As after a crash: what was written last is in the log alone.
    with closing(old.connect()) as later:
        triggers = later.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            later.execute(f"DROP TRIGGER {name}")
        later.execute("UPDATE agent_sessions_blob SET data = x'00' WHERE id = 1")
        later.commit()
        for end in ("-wal", "-shm"):
            shutil.copy(f"{old.folder}/contextlab.sqlite3{end}", new.folder)
    code, said = new.run("restore", str(place))
    assert code == 1 and "contextlab.sqlite3-wal" in said
    for end in ("-wal", "-shm"):
        (new.folder / f"contextlab.sqlite3{end}").unlink()
    assert new.run("restore", str(place)) == (0, "")
    assert content(new) == before != content(old)
    assert (old.run("verify")[0], new.run("verify")) == (1, (0, ""))


@pytest.mark.parametrize("damage", ["cut", "changed", "no manifest", "another format", "text"])
def test_a_damaged_backup_is_refused(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "backup.zip"
    archive.write(place, Manifest("sqlite", "1", archive.now(), [], {}), iter([b"store"] * 100))
    with archive.opened(place) as (found, store, _):
        assert b"".join(store) == b"store" * 100 and found.bytes == 500
    _DAMAGES[damage](place)
    with pytest.raises(NotABackup, match="It"), archive.opened(place) as (_, store, _):
        for _ in store:
            pass


@pytest.mark.parametrize(
    "manifest",
    ["[]", "{", "[" * 100_000, '{"format": 1}', '{"format": 1, "rows": 5}', '{"format": [1]}'],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, manifest: str) -> None:
    with zipfile.ZipFile(place := tmp_path / "backup.zip", "w") as file:
        file.writestr(archive.STORE, b"store")
        file.writestr(archive.MANIFEST, manifest)
    with pytest.raises(NotABackup, match="It"), archive.opened(place):
        pass


def test_a_damaged_database_in_a_whole_backup_is_refused(tmp_path: Path) -> None:
    for store, said in ((b"no database" * 1000, "damaged"), (b"", "other rows")):
        with pytest.raises(NotABackup, match=said):
            sqlite.restore(Manifest("sqlite", "1", "", [], {"t": 1}), iter([store]), tmp_path / "s")
        assert list(tmp_path.iterdir()) == []


def test_two_backups_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with archive.writing(tmp_path / "one.zip") as partial:
        with pytest.raises(BackupUnderway), archive.writing(tmp_path / "two.zip"):
            pass
        partial.write_bytes(b"whole")
    assert (tmp_path / "one.zip").read_bytes() == b"whole"


def _cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-200])


def _changed(place: Path) -> None:
    _write(place, b"stOre" * 100, manifest(place))


def _without_manifest(place: Path) -> None:
    with zipfile.ZipFile(place, "w") as file:
        file.writestr("store", b"")


def _another_format(place: Path) -> None:
    _write(place, b"store" * 100, {**manifest(place), "format": 3})


def _write(place: Path, store: bytes, said: dict[str, Any]) -> None:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("store", store)
        file.writestr("manifest.json", json.dumps(said))


_DAMAGES: dict[str, Callable[[Path], Any]] = {
    "cut": _cut,
    "changed": _changed,
    "no manifest": _without_manifest,
    "another format": _another_format,
    "text": lambda place: place.write_text("no zip"),
}


def dying(store: Store, piece: int, *arguments: str) -> int:
    """Run a command that ends like kill -9 at a piece of the store; return its exit code."""
    started = ["-c", DIES_AT, str(piece), *arguments]
    return preloaded.run(started, env=store.environment).returncode


@pytest.mark.fault("R4")
def test_a_store_is_backed_up_before_its_migration(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = stores
    backups = old.folder / "backups"
    old.put(OLD_STORE)
    before = old.schema()
    assert old.run("migrate", "--plan") == (0, "")
    if isinstance(old, PostgresStore):
        with monkeypatch.context() as patched:
            patched.setenv("PATH", "/nowhere")
            code, said = old.run("migrate")
        assert code == 1 and "pg_dump is not installed" in said and "--no-backup" in said
        assert old.schema() == before
    assert not list(backups.glob("*.zip"))
    # To where it is: a backup, and nothing to migrate.
    nowhere = ("migrate", "agent_sessions", "0001_squashed_0018_break_causes")
    for _ in range(BACKUPS_KEPT):
        assert old.run(*nowhere) == (0, "")
    earlier = sorted(backups.glob("contextlab-*-before-*.zip"))
    assert len(earlier) == BACKUPS_KEPT
    # One migration of all, which test_migrations runs.
    assert old.run("migrate", "agent_sessions", "0019") == (0, "")
    *kept, made = sorted(backups.glob("contextlab-*-before-*.zip"))
    assert kept == earlier[1:]
    assert old.schema() != before
    assert new.run("restore", str(made)) == (0, "")
    assert new.schema() == before
    assert new.run(*nowhere, "--no-backup") == (0, "")
    assert not list(new.folder.rglob("*.zip"))


@pytest.mark.fault("M1")
def test_a_backup_while_an_agent_works_is_one_moment(
    server_with: Callable[..., Server], tmp_path: Path
) -> None:
    server = server_with()
    made = []
    with Work(server.address, server.new_key(), "backed-up", tmp_path) as work:
        work.start()
        for share in (0.25, 0.5, 0.75):
            work.reached(share)
            done = work.agent.done
            place = tmp_path / f"{share}.zip"
            assert _command(tmp_path, "backup", str(place)) == 0
            made.append((done, place))
        work.ended()
        work.audit(in_data_dir(tmp_path))
    assert server.stop() == 0
    for done, place in made:
        folder = tmp_path / f"restored-{place.stem}"
        assert _command(folder, "restore", str(place)) == 0
        store = in_data_dir(folder)
        store.audit()
        ((steps,),) = store.rows("SELECT step_count FROM agent_sessions_session")
        assert steps >= done, "a step acknowledged before the backup is missing"
        assert _command(folder, "verify") == 0


def _command(folder: Path, *arguments: str) -> int:
    environment = {**os.environ, "CONTEXTLAB_DATA_DIR": str(folder), "DATABASE_URL": ""}
    environment.pop("REDIS_URL", None)
    return preloaded.run(["-m", "contextlab.cli", *arguments], env=environment).returncode
