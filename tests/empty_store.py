"""A store whose tables the migrations made once, copied wherever a test needs one of its own.

Every migration together takes longer than most test files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import django

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "contextlab.sqlite3"


def with_tables(folder: Path) -> Path:
    """A data directory as a first start leaves it, without the seconds that this takes."""
    shutil.copy(empty_store(), folder / DATABASE)
    return folder


@cache
def empty_store() -> Path:
    """The file: one for all checkouts and processes, another when a migration has changed."""
    made = Path(gettempdir(), f"contextlab-{os.getuid()}-{_migrations()}.sqlite3")
    with _alone():
        if not made.exists():
            with TemporaryDirectory() as folder:
                _migrate(folder)
                Path(folder, DATABASE).replace(made)
    return made


@cache
def empty_database(server: str) -> str:
    """The name of a database of a PostgreSQL to make others from, with TEMPLATE; one for all
    checkouts, another when a migration has changed."""
    import psycopg

    name = f"contextlab_empty_{_migrations()}"
    with _alone(), psycopg.connect(server, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        if not known.fetchone():
            made = f"{name}_{os.getpid()}"
            connection.execute(f"CREATE DATABASE {made}")
            with TemporaryDirectory() as folder:
                _migrate(folder, f"{server.rpartition('/')[0]}/{made}")
            connection.execute(f"ALTER DATABASE {made} RENAME TO {name}")
    return name


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process make it, and the others find it."""
    with Path(gettempdir(), f"contextlab-{os.getuid()}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _migrations() -> str:
    sources = sorted((ROOT / "sessions" / "migrations").glob("*.py"))
    known = django.__version__.encode() + b"".join(source.read_bytes() for source in sources)
    return sha256(known).hexdigest()[:16]


def _migrate(folder: str, database: str = "") -> None:
    subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={
            **os.environ,
            "CONTEXTLAB_DATA_DIR": folder,
            "DATABASE_URL": database,
            "REDIS_URL": "",
        },
        check=True,
    )
