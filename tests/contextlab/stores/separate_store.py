"""Databases of their own, and the commands of this version on them."""

import gzip
import os
import sqlite3
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from tests import preloaded
from tests.conftest import ROOT
from tests.empty_store import empty_database, with_tables

POSTGRES_SCHEMA = [
    "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable,"
    " column_default, is_identity FROM information_schema.columns WHERE table_schema = 'public'",
    # A dump that is read back has its casts elsewhere.
    r"SELECT regexp_replace(indexdef, '::[a-z ]+(\[\])?|[()]', '', 'g') FROM pg_indexes"
    " WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    r"SELECT regexp_replace(pg_get_triggerdef(oid), '::[a-z ]+(\[\])?|[()]', '', 'g')"
    " FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
]


class Store(ABC):
    """A separate database, and this version's commands on it."""

    url = ""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands on it."""
        where = {"CONTEXTLAB_DATA_DIR": str(self.folder), "DATABASE_URL": self.url}
        return {**os.environ, **where, "REDIS_URL": ""}

    def run(self, *arguments: str, program: str = "contextlab.cli") -> tuple[int, str]:
        """Run a command; return its exit code and stderr."""
        done = preloaded.run(["-m", program, *arguments], env=self.environment)
        return done.returncode, done.stderr

    def start(self, *arguments: str, program: str = "contextlab.cli") -> subprocess.Popen[str]:
        """Start a command, whose output can be read."""
        return subprocess.Popen(
            [sys.executable, "-u", "-m", program, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

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

    @abstractmethod
    def migrate(self) -> None:
        """Make the tables of this version in an empty database, as the command does."""

    @abstractmethod
    def put(self, old: Path) -> None:
        """Put a store in place: `old` with the suffix .db.gz or .sql.gz."""

    @abstractmethod
    def schema(self) -> set[Any]:
        """Return everything a migration creates, without column order."""


class SqliteStore(Store):
    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "contextlab.sqlite3")

    def put(self, old: Path) -> None:
        packed = old.with_suffix(".db.gz").read_bytes()
        (self.folder / "contextlab.sqlite3").write_bytes(gzip.decompress(packed))

    def migrate(self) -> None:
        with_tables(self.folder)

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

    def migrate(self) -> None:
        self.administer(f"DROP DATABASE {self.name} WITH (FORCE)")
        self.administer(f"CREATE DATABASE {self.name} TEMPLATE {empty_database(self.server)}")

    def put(self, old: Path) -> None:
        self.query(gzip.decompress(old.with_suffix(".sql.gz").read_bytes()).decode())

    def schema(self) -> set[Any]:
        return {row for sql in POSTGRES_SCHEMA for row in self.query(sql)}
