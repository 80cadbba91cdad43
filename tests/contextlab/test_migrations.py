"""Migrations: a store with the eighteen replaced migrations is migrated by the current ones.

`store_9ecb88f.db.gz` (SQLite) and `store_9ecb88f.sql.gz` (`pg_dump --inserts`) were made by commit
9ecb88f: `contextlab migrate`, then the steps of `contextlab demo` with one recorded session
(`demo.play(…, without=…)`) and one simulated policy (`presets=["offload-first"]`).
"""

import gzip
import os
import sqlite3
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.empty_store import with_tables

STORE = Path(__file__).with_name("store_9ecb88f")
TITLES = {
    "Children under four go free",
    "How long may a text message be?",
    "Late ships in two languages",
}
POSTGRES_SCHEMA = [
    "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable,"
    " column_default, is_identity FROM information_schema.columns WHERE table_schema = 'public'",
    # A dump that is read back has its casts elsewhere.
    r"SELECT regexp_replace(indexdef, '::[a-z ]+(\[\])?|[()]', '', 'g') FROM pg_indexes"
    " WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
]

# The store has none: its agents asked for none.
A_CONTEXT = (
    "INSERT INTO agent_sessions_servedcontext"
    " (id, run_id, revision, seq, step, format, tokens, recited, knowledge, created)"
    " SELECT 'ctx', id, 0, 1, 1, 'anthropic', 1, 0, '', created FROM agent_sessions_run"
    " WHERE origin = 'served' ORDER BY created LIMIT 1"
)


class Store(ABC):
    """A separate database, and this version's commands on it."""

    url = ""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    def run(self, *arguments: str, program: str = "contextlab.cli") -> tuple[int, str]:
        """Run a command; return its exit code and stderr."""
        done = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "CONTEXTLAB_DATA_DIR": str(self.folder),
                "DATABASE_URL": self.url,
                "REDIS_URL": "",
            },
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr

    def run_all(self, *commands: str) -> list[tuple[int, str]]:
        """Run commands at once; return exit code and stderr of each."""
        with ThreadPoolExecutor(len(commands)) as threads:
            return list(threads.map(lambda command: self.run(*command.split()), commands))

    def query(self, sql: str) -> list[Any]:
        """Return the rows of a statement, none of one that has no rows."""
        with closing(self.connect()) as connection, connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    @abstractmethod
    def connect(self) -> Any:
        """Open the database, past the product."""

    def migrate(self) -> None:
        """Make the tables of this version in an empty database."""
        assert self.run("migrate") == (0, "")

    @abstractmethod
    def restore(self) -> None:
        """Put the store of commit 9ecb88f in place."""

    @abstractmethod
    def schema(self) -> set[Any]:
        """Return everything a migration creates, without column order."""


class SqliteStore(Store):
    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "contextlab.sqlite3")

    def restore(self) -> None:
        packed = STORE.with_suffix(".db.gz").read_bytes()
        (self.folder / "contextlab.sqlite3").write_bytes(gzip.decompress(packed))

    def migrate(self) -> None:
        with_tables(self.folder)  # made by this command, once

    def schema(self) -> set[Any]:
        found = self.query("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        tables = [(name, sql) for type_, name, sql in found if type_ == "table"]
        parts = {
            (name, part)
            for name, sql in tables
            for part in sql[sql.index("(") + 1 : -1].split(", ")
        }
        return parts | {sql for type_, _, sql in found if type_ != "table"}


class PostgresStore(Store):
    def __init__(self, folder: Path, server: str) -> None:
        super().__init__(folder)
        self.server, self.name = server, f"contextlab_{uuid.uuid4().hex[:12]}"
        self.url = f"{server.rpartition('/')[0]}/{self.name}"
        self.administer(f"CREATE DATABASE {self.name}")

    def administer(self, sql: str) -> None:
        """Administer a database from outside."""
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(sql)

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url)

    def restore(self) -> None:
        self.query(gzip.decompress(STORE.with_suffix(".sql.gz").read_bytes()).decode())

    def schema(self) -> set[Any]:
        return {row for sql in POSTGRES_SCHEMA for row in self.query(sql)}


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two empty databases."""
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "old"), SqliteStore(tmp_path / "new")
        return
    server = request.getfixturevalue("postgres")
    made = [PostgresStore(tmp_path / name, server) for name in ("old", "new")]
    yield made[0], made[1]
    for store in made:
        store.administer(f"DROP DATABASE {store.name} WITH (FORCE)")


def test_a_store_of_the_replaced_migrations_is_migrated_and_opened(stores):
    old, new = stores
    old.restore()
    before = old.schema()
    old.query(A_CONTEXT)
    assert old.run("migrate") == (0, "")
    applied = {name for (name,) in old.query("SELECT name FROM django_migrations")}
    assert {"0018_break_causes", "0001_squashed_0018_break_causes", "0019_words"} <= applied

    titles = old.query("SELECT title, external_id FROM agent_sessions_session")
    assert {title for title, _ in titles} == TITLES
    for _, external_id in titles:
        assert old.run("show", external_id) == (0, "")
    origins = {origin for (origin,) in old.query("SELECT origin FROM agent_sessions_run")}
    assert origins == {"recorded", "managed", "simulated"}
    assert old.query("SELECT id FROM agent_sessions_managedcontext") == [("ctx",)]
    figures = str(old.query("SELECT figures FROM agent_sessions_simulationresult"))
    assert "in_context" in figures and "in_place" not in figures
    documents = str(old.query("SELECT document FROM agent_sessions_policyversion"))
    assert "ttl" in documents and "lifetime" not in documents
    assert ("careful",) in old.query("SELECT name FROM agent_sessions_policy")
    assert ("demo.loaded",) in old.query("SELECT action FROM agent_sessions_auditentry")
    for table in ("auditentry", "blob", "message", "block"):
        with pytest.raises(Exception, match="append-only|insert-only"):
            old.query(f"UPDATE agent_sessions_{table} SET id = id")

    # It may warn that pages are not built.
    assert old.run("makemigrations", "--check", "--dry-run", program="manage")[0] == 0
    new.migrate()
    assert len(before) > 500
    assert old.schema() == new.schema()


def test_processes_that_start_at_once_migrate_one_after_another(stores):
    store, _ = stores
    if isinstance(store, SqliteStore):
        commands = ["token create", "token create", "token list"]  # these migrate by themselves
    else:
        commands = ["migrate --verbosity 0"] * 3
    assert store.run_all(*commands) == [(0, "")] * 3
    assert store.run("token", "list") == (0, "")


def test_a_store_with_some_of_the_replaced_migrations_is_refused_in_one_sentence(stores):
    store, _ = stores
    store.restore()
    store.query("DELETE FROM django_migrations WHERE name = '0018_break_causes'")
    store.query("ALTER TABLE agent_sessions_run DROP COLUMN engine")
    before = store.schema()
    for command in ("migrate", "serve", "show x"):
        code, said = store.run(*command.split())
        assert code == 1
        assert said.startswith("The database stopped partway through migrations ")
        assert said.endswith("of commit 9ecb88f on it first, then of this version.\n")
        assert said.count("\n") == said.count(".") == 1
    assert store.run("doctor")[0] == 1
    assert store.schema() == before
