"""A migration is killed at one of its statements: the next one finishes it; a backup is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contextlab.stores.separate_store import SqliteStore

OLD_STORE = ROOT / "tests" / "contextlab" / "stores" / "store_9ecb88f"

DIES_AT = """
import os, sys
from django.db.backends.utils import CursorWrapper

limit, seen, execute = int(sys.argv[1]), 0, CursorWrapper.execute

def dies(cursor, sql, params=None):
    global seen
    done = execute(cursor, sql, params)
    if str(sql).startswith(("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE")):
        seen += 1
        if seen == limit:
            os._exit(137)
    return done

CursorWrapper.execute = dies
from contextlab import cli
cli.main(["migrate"])
"""
TABLES = ("session", "message", "block", "blob", "modelcall")


@pytest.mark.fault("M5", "R4")
def test_a_migration_that_is_killed_is_finished_or_taken_back(tmp_path: Path) -> None:
    store, back = SqliteStore(tmp_path / "old"), SqliteStore(tmp_path / "back")
    store.put(OLD_STORE)
    before = store.schema()
    counts = [store.query(f"SELECT count(*) FROM agent_sessions_{table}") for table in TABLES]
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(store.folder),
        "DATABASE_URL": "",
        "REDIS_URL": "",
    }
    command = [sys.executable, "-c", DIES_AT, "100"]
    assert subprocess.run(command, cwd=ROOT, env=environment).returncode == 137
    assert store.query("PRAGMA integrity_check") == [("ok",)]
    assert store.run("migrate") == (0, "")
    assert store.schema() != before
    after = [store.query(f"SELECT count(*) FROM agent_sessions_{table}") for table in TABLES]
    assert after == counts
    first = min((store.folder / "backups").glob("contextlab-*-before-*.zip"))
    assert back.run("restore", str(first)) == (0, "")
    assert back.schema() == before
