"""An import killed at any statement leaves whole sessions or none, and resumes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.empty_store import with_tables
from tests.faults.store import in_data_dir

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "sessions" / "importers" / "samples"

DIES_AT = """
import os, sys
import django
django.setup()
from django.core.management import call_command
from django.db import connection

limit, seen = int(sys.argv[1]), 0

def dies(execute, sql, params, many, context):
    global seen
    if sql.startswith(("INSERT", "UPDATE", "SAVEPOINT", "RELEASE")):
        seen += 1
        if seen == limit:
            os._exit(137)
    return execute(sql, params, many, context)

with connection.execute_wrapper(dies):
    call_command("import_logs", *sys.argv[2:], json=True)
print(seen, file=sys.stderr)
"""


def run(data_dir: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, *command], env=env, cwd=data_dir, capture_output=True, text=True
    )


def rows(data_dir: Path, sql: str) -> list[Any]:
    with sqlite3.connect(data_dir / "contextlab.sqlite3") as database:
        return database.execute(sql).fetchall()


def contents(data_dir: Path) -> list[Any]:
    """The content of the store, without generated ids."""
    return rows(
        data_dir,
        "SELECT s.external_id, s.step_count, b.position, b.born, b.sha, b.kind"
        " FROM agent_sessions_block b JOIN agent_sessions_session s ON s.id = b.session_id"
        " ORDER BY s.external_id, b.position",
    )


def audit(data_dir: Path) -> None:
    """Promises that hold after any crash."""
    in_data_dir(data_dir).audit()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], int]:
    """The store after an undisturbed import, and its number of statements."""
    data_dir = with_tables(tmp_path_factory.mktemp("whole"))
    done = run(data_dir, "-c", DIES_AT, "0", str(SAMPLES))
    assert done.returncode == 0, done.stderr
    return contents(data_dir), int(done.stderr.split()[-1])


@pytest.mark.fault("I4")
def test_dying_at_any_statement_loses_nothing_and_doubles_nothing(
    whole: tuple[list[Any], int], tmp_path: Path
) -> None:
    expected, statements = whole
    with_tables(tmp_path)
    for limit in range(1, statements, max(statements // 12, 1)):
        died = run(tmp_path, "-c", DIES_AT, str(limit), str(SAMPLES))
        if died.returncode == 0:
            break  # most of it was already stored, so it ends earlier
        assert died.returncode == 137, died.stderr
        audit(tmp_path)
    done = run(tmp_path, "-m", "contextlab.cli", "import", "--json", str(SAMPLES))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"]
    audit(tmp_path)
    assert contents(tmp_path) == expected
    unmeasured = "SELECT count(*) FROM agent_sessions_session WHERE NOT measured"
    assert rows(tmp_path, unmeasured) == [(0,)]
