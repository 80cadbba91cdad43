"""`contextlab verify`: each kind of damage is named, and a store that is whole passes."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sessions.actions.record.checks import RULES
from tests import preloaded
from tests.conftest import ROOT, Server, wait_until
from tests.faults.store import in_data_dir

STORE = Path(__file__).with_name("store_9ecb88f.db.gz")

S = "agent_sessions_"
MANAGED = f"(SELECT run_id FROM {S}entry LIMIT 1)"
CLOSED = f"(SELECT MIN(id) FROM {S}entry WHERE closed_by_id IS NOT NULL)"
OPENED = f"(SELECT MIN(id) FROM {S}entry WHERE opened_by_id IS NOT NULL)"
OF_BLOCK = f"(SELECT MAX(id) FROM {S}entry WHERE block_id IS NOT NULL)"


def again(what: str) -> str:
    """A second entry for what already stands in the context."""
    columns = "run_id, position, block_id, replacement_id, from_step, opened_by_id"
    return (
        f"INSERT INTO {S}entry ({columns}) SELECT {columns} FROM {S}entry"
        f" WHERE {what}_id IS NOT NULL ORDER BY id DESC LIMIT 1"
    )


DAMAGE = {
    "a blob is what its hash says": f"UPDATE {S}blob SET data = x'00' WHERE id = 1",
    "a blob has its size": f"UPDATE {S}blob SET size = size + 1 WHERE id = 2",
    "messages are numbered without a gap": (
        f"UPDATE {S}message SET seq = seq + 1000 WHERE id = (SELECT MAX(id) FROM {S}message)"
    ),
    "blocks are numbered without a gap": f"UPDATE {S}block SET position = 9999 WHERE id = 1",
    "a message has its blocks": f'UPDATE {S}block SET "index" = 3 WHERE id = 2',
    "a block belongs to its message": f"UPDATE {S}block SET born = born + 1 WHERE id = 3",
    "a message is born at a step of its session": f"UPDATE {S}message SET born = 999 WHERE id = 4",
    "a model call is a step of its session": f"UPDATE {S}modelcall SET step = 999 WHERE id = 1",
    "a block has its bytes": f"UPDATE {S}block SET sha = 'gone' WHERE id = 5",
    "a replacement has its bytes": f"UPDATE {S}replacement SET sha = 'gone' WHERE id = 1",
    "a prepared text has its bytes": (
        f"INSERT INTO {S}artefact (session_id, kind, digest, sha, maker, model, note, usage,"
        " masked, unsupported, ms, created)"
        f" SELECT id, 'outline', 'd', 'gone', 'm', '', '', '{{}}', '{{}}', '[]', 0, created"
        f" FROM {S}session LIMIT 1"
    ),
    "an archive has its bytes": (
        f"INSERT INTO {S}archive (session_id, sha, rows, bytes, text_bytes, loose, created)"
        f" SELECT id, 'gone', '{{}}', 0, 0, 0, created FROM {S}session ORDER BY id LIMIT 1"
    ),
    "a session has an archive if it is archived": (
        f"UPDATE {S}session SET archived = created WHERE id = (SELECT MAX(id) FROM {S}session)"
    ),
    "revisions are numbered up to the head": f"UPDATE {S}run SET head = 7 WHERE id = {MANAGED}",
    "a revision has edits, numbered without a gap": (
        f'UPDATE {S}edit SET "index" = 70 WHERE id = (SELECT MAX(id) FROM {S}edit)'
    ),
    "an edit's replacement is of its run": (
        f"UPDATE {S}replacement SET run_id = (SELECT id FROM {S}run WHERE id != run_id LIMIT 1)"
        " WHERE id = 2"
    ),
    "an entry is a block or a replacement": (
        f"INSERT INTO {S}entry (run_id, position, from_step) VALUES ({MANAGED}, 1, 1)"
    ),
    "an entry stands where its block does": (
        f"UPDATE {S}entry SET position = position + 500 WHERE id = {OF_BLOCK}"
    ),
    "an entry ends after it begins, and when it is closed": (
        f"UPDATE {S}entry SET from_step = 900, opened_by_id = NULL, to_step = 3 WHERE id = {CLOSED}"
    ),
    "an entry begins and ends at the steps of its run's revisions": (
        f"UPDATE {S}entry SET from_step = from_step + 1 WHERE id = {OPENED}"
    ),
    "no block stands twice": again("block"),
    "no replacement stands twice": again("replacement"),
    "a running job has a holder": (
        f"UPDATE {S}job SET state = 'running', finished = NULL"
        f" WHERE id = (SELECT MIN(id) FROM {S}job)"
    ),
    "a job that does not run has none": (
        f"UPDATE {S}job SET state = 'queued', token = id WHERE id = (SELECT MAX(id) FROM {S}job)"
    ),
    "a job has ended when its state says so": (
        f"UPDATE {S}job SET finished = created WHERE id = (SELECT MAX(id) FROM {S}job)"
    ),
    "a reference leads to a row": (
        f"UPDATE {S}block SET message_id = 99999 WHERE id = (SELECT MAX(id) FROM {S}block)"
    ),
}
"""What breaks each rule, on rows of its own."""

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Commands on a store with recorded, managed and simulated runs."""
    with gzip.open(STORE) as packed:
        (tmp_path / "contextlab.sqlite3").write_bytes(packed.read())
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(tmp_path),
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "PYTHONPATH": str(ROOT),
    }

    def run(*arguments: str) -> tuple[int, str]:
        done = preloaded.run(["-m", "contextlab.cli", *arguments], env=environment)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout

    return run


@pytest.mark.fault("D6", "R3")
def test_each_kind_of_damage_is_named(command: Command, tmp_path: Path) -> None:
    code, said = command("verify")
    assert (code, said) == (0, "Nothing wrong: 3 sessions, 78 blobs and 8 audit entries checked.\n")
    with closing(sqlite3.connect(tmp_path / "contextlab.sqlite3")) as database:
        # The log's own are missed themselves: tests/sessions/accounts/test_audit_chain.py.
        for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name NOT LIKE '%audit%'"
        ):
            database.execute(f"DROP TRIGGER {name}")
        for sql in DAMAGE.values():
            assert database.execute(sql).rowcount == 1, sql
        database.commit()
    code, said = command("verify", "--json")
    assert code == 1
    findings = json.loads(said)["findings"]
    assert {one["rule"] for one in findings} == set(DAMAGE)
    assert set(RULES) < set(DAMAGE)
    code, said = command("verify")
    assert (code, len(said.splitlines())) == (1, len(findings) + 1)


@pytest.mark.fault("D6")
def test_a_damaged_file_is_named(command: Command, tmp_path: Path) -> None:
    assert command("verify")[0] == 0
    file = tmp_path / "contextlab.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        [(page,)] = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'block_tool_call'"
        )
        [(size,)] = database.execute("PRAGMA page_size")
        database.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_master SET sql = replace(sql, '\"tool_call\"', '\"tool\"')"
        database.execute(f"{change} WHERE name = 'block_tool_call'")
        database.commit()
    code, said = command("verify")
    assert code == 1
    assert "SQLite's own check: " in said
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xff" * 200)
    code, said = command("verify")
    assert code == 1
    assert "the database answers: database: database disk image is malformed" in said


def test_an_unclean_stop_is_followed_by_a_check(
    server_with: Callable[..., Server], tmp_path: Path
) -> None:
    checks = f"SELECT state, result FROM {S}job WHERE kind = 'verify'"
    sooner = {"CONTEXTLAB_SWEEP_SECONDS": "0.1"}
    server = server_with(**sooner)
    store = in_data_dir(tmp_path)
    assert store.rows(checks) == []
    server.kill()
    server = server_with(**sooner)
    wait_until(lambda: store.rows(checks)[0][0] == "done")
    assert json.loads(store.rows(checks)[0][1])["findings"] == 0
    assert server.stop() == 0
    assert server_with().stop() == 0
    assert len(store.rows(checks)) == 1, "it was stopped cleanly"


@pytest.mark.fault("M7")
def test_of_several_servers_the_one_that_dies_is_noticed(
    server_with: Callable[..., Server], tmp_path: Path, redis_url: str
) -> None:
    checks = f"SELECT count(*) FROM {S}job WHERE kind = 'verify'"
    store = in_data_dir(tmp_path)
    dies, stays = server_with(REDIS_URL=redis_url), server_with(REDIS_URL=redis_url)
    assert store.rows(checks) == [(0,)], "the other one runs"
    dies.kill()
    assert server_with(REDIS_URL=redis_url).stop() == 0
    assert store.rows(checks) == [(1,)]
    with closing(sqlite3.connect(tmp_path / "contextlab.sqlite3", timeout=20)) as database:
        database.execute(f"DELETE FROM {S}job WHERE kind = 'verify'")
        database.commit()
    assert stays.stop() == 0
    assert server_with(REDIS_URL=redis_url).stop() == 0
    assert store.rows(checks) == [(0,)], "each is noticed once"
    assert not [*tmp_path.glob("*running*")]
