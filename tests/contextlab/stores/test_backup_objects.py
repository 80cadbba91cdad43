"""Backups into object storage, with the objects of the store: whole, or none; restored, equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import preloaded
from tests.contextlab.stores.separate_store import PostgresStore, Store
from tests.contextlab.stores.test_backup import SAMPLES, TABLES
from tests.object_storage import ObjectStorage, object_storage

BACKUP = "s3://lab/backups/one.zip"

# Ends like kill -9 at the request of that number to object storage: argv[1] of argv[2:].
DIES_AT = """
import os, sys
from contextlab import cli
left = int(sys.argv[1])
from botocore.endpoint import Endpoint
sends = Endpoint._send
def send(self, request):
    global left
    left -= 1
    if left < 0:
        os._exit(137)
    return sends(self, request)
Endpoint._send = send
cli.main(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStorage]:
    """A server of its own."""
    with object_storage(tmp_path_factory.mktemp("backups") / "swift") as made:
        yield made


@pytest.fixture(autouse=True)
def reached(bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands reach the server, and its bucket is empty."""
    for name, value in {**bucket.environment, "CONTEXTLAB_BLOBS": bucket.url}.items():
        monkeypatch.setenv(name, value)
    for name in bucket.names():
        bucket.client.delete_object(Bucket="lab", Key=name)


def dying(store: Store, at: int, *arguments: str) -> int:
    """A command that ends at a request to object storage; its exit code."""
    started = ["-c", DIES_AT, str(at), *arguments]
    return preloaded.run(started, env=store.environment).returncode


def content(store: Store) -> dict[str, list[Any]]:
    """Rows of the tables that hold what agents sent."""
    return {
        table: sorted(map(repr, store.query(f"SELECT * FROM agent_sessions_{table}")))
        for table in TABLES
    }


def named(store: Store) -> list[str]:
    """The objects that rows name, as keys of the bucket."""
    rows = store.query("SELECT object_name FROM agent_sessions_blob WHERE object_name <> ''")
    return sorted(f"contextlab/{name}" for (name,) in rows)


def test_a_backup_has_every_object_and_a_killed_one_is_none(
    stores: tuple[Store, Store], bucket: ObjectStorage, tmp_path: Path
) -> None:
    old, new = stores
    old.migrate()
    assert old.run("import", str(SAMPLES))[0] == 0
    assert old.run("import", str(large(tmp_path)))[0] == 0
    before, objects = content(old), named(old)
    assert len(objects) == 3 and bucket.names("contextlab/blobs/") == objects
    for at in (0, 2, len(objects) + 1):
        assert dying(old, at, "backup", "--to", BACKUP) == 137
        assert bucket.names("backups/") == []
    assert old.run("backup", "--to", BACKUP) == (0, "")
    assert bucket.names("backups/") == ["backups/one.zip"]
    assert old.run("backup", "--check", BACKUP) == (0, "")
    assert old.run("backup", BACKUP) == (2, f"{BACKUP} already exists. Choose another.\n")

    for name in objects:  # the disaster
        bucket.client.delete_object(Bucket="lab", Key=name)
    assert old.run("verify")[0] == 1
    code, said = old.run("backup", "s3://lab/backups/two.zip")
    assert code == 1 and "3 of the objects that rows name are missing" in said
    for at in (0, 3):
        assert dying(new, at, "restore", BACKUP) == 137
        assert not is_restored(new)
    assert new.run("restore", BACKUP) == (0, "")
    assert content(new) == before and bucket.names("contextlab/blobs/") == objects
    assert new.run("verify") == (0, "")

    client = bucket.client
    damaged = bytearray(client.get_object(Bucket="lab", Key="backups/one.zip")["Body"].read())
    damaged[damaged.index(b"objects/") + 300] ^= 1
    client.put_object(Bucket="lab", Key="backups/bad.zip", Body=bytes(damaged))
    assert new.run("backup", "--check", "s3://lab/backups/bad.zip")[0] == 1


def test_archived_sessions_are_in_a_backup_and_open_as_they_were(
    stores: tuple[Store, Store], bucket: ObjectStorage, tmp_path: Path
) -> None:
    old, new = stores
    old.migrate()
    assert old.run("import", str(large(tmp_path)))[0] == 0
    ((session,),) = old.query("SELECT id FROM agent_sessions_session")
    long_ago = "'2024-01-01 00:00:00+00:00'"
    old.query(f"UPDATE agent_sessions_session SET changed = {long_ago}, created = {long_ago}")
    old.query("DELETE FROM agent_sessions_job")
    before = exported(old, str(session), tmp_path / "before")
    assert old.run("archive", "--days", "30", "--now") == (0, "")
    assert old.query("SELECT count(*) FROM agent_sessions_message") == [(0,)]
    (archive,) = named(old)
    assert old.run("backup", "--to", BACKUP) == (0, "")
    bucket.client.delete_object(Bucket="lab", Key=archive)
    assert new.run("restore", BACKUP) == (0, "")
    assert new.run("verify") == (0, "")
    assert exported(new, str(session), tmp_path / "after") == before
    assert len(named(new)) == 3
    assert new.run("verify") == (0, "")


def exported(store: Store, session: str, place: Path) -> bytes:
    """A session as a file."""
    assert store.run("export", session, "--unmasked", "--output", str(place))[0] == 0
    return place.read_bytes()


def test_a_move_is_killed_and_goes_on(
    stores: tuple[Store, Store], tmp_path: Path, bucket: ObjectStorage, monkeypatch: Any
) -> None:
    store, _ = stores
    store.migrate()
    monkeypatch.setenv("CONTEXTLAB_BLOBS", "")
    assert store.run("import", str(large(tmp_path)))[0] == 0
    code, said = store.run("blobs", "--move", "objects")
    assert code == 2 and "CONTEXTLAB_BLOBS is not set" in said
    monkeypatch.setenv("CONTEXTLAB_BLOBS", bucket.url)
    for at in (0, 1, 2):
        assert dying(store, at, "blobs", "--move", "objects") == 137
        assert store.run("verify") == (0, "")
    assert store.run("blobs", "--move", "objects") == (0, "")
    assert len(named(store)) == 3
    for at in (1, 3, 4):
        assert dying(store, at, "blobs", "--move", "database") == 137
        assert store.run("verify") == (0, "")
    assert store.run("blobs", "--move", "database") == (0, "")
    assert named(store) == []
    monkeypatch.setenv("CONTEXTLAB_BLOBS", "")
    assert store.run("verify") == (0, "")


def is_restored(store: Store) -> bool:
    """Whether there is anything in the place of a restore."""
    if isinstance(store, PostgresStore):
        return bool(store.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'"))
    return (store.folder / "contextlab.sqlite3").exists()


def large(folder: Path) -> Path:
    """A log with three texts that are too large for rows."""
    path = folder / "large.json"
    texts = ["".join(f"{n * n * 7919 + number}," for n in range(4000)) for number in range(3)]
    path.write_text(json.dumps([{"role": "user", "content": text} for text in texts]))
    return path
