"""Automatic migration, before anything reads the tables, by one process at a time."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management import CommandError, call_command
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor

from contextlab.database import bound_wait

LAST_UNSQUASHED = "9ecb88f"
"""The last commit with the migrations replaced by this release's first one."""

_ADVISORY_LOCK = 0x636F6E746578746C
"""Key of the lock on PostgreSQL: "contextl" in ASCII."""
PAUSE_SECONDS = 0.2
"""Between two tries to get it."""


@contextmanager
def only_migration() -> Iterator[None]:
    """Wait until no other process migrates the database, and keep others waiting.

    The process must read what is missing inside: another one may have migrated meanwhile.
    """
    if connection.vendor == "sqlite":
        # Beside the database, which several data directories may share.
        lock = Path(connection.settings_dict["NAME"]).with_name("migrate.lock")
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # closing the file releases it
            yield
        return
    with connection.cursor() as cursor:
        # A statement that waits is a transaction, and CREATE INDEX CONCURRENTLY waits for all.
        while not _is_ours(cursor):
            time.sleep(PAUSE_SECONDS)
        cursor.execute("SET lock_timeout = 0")  # others may hold a table for minutes
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_ADVISORY_LOCK])
            bound_wait(connection)


def _is_ours(cursor: CursorWrapper) -> bool:
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [_ADVISORY_LOCK])
    return bool(cursor.fetchone()[0])


def missing_migrations() -> list[Migration]:
    """Return the migrations that the database lacks.

    Raises CommandError for a database with only some of the migrations replaced by a squashed one:
    Django would drop that one from its graph and find nothing to do.
    """
    executor = MigrationExecutor(connection)
    loader = executor.loader
    if loader.replacements.keys() - loader.graph.nodes.keys():
        raise CommandError(
            "The database stopped partway through migrations that this version has merged into "
            f"one: run `contextlab migrate` of commit {LAST_UNSQUASHED} on it first, then of this "
            "version."
        )
    return [migration for migration, _ in executor.migration_plan(loader.graph.leaf_nodes())]


ROOT = Path(__file__).resolve().parents[1]


def bring_up_to_date(*, apart: bool = False) -> None:
    """Migrate SQLite, with `apart` in a process of its own; for PostgreSQL only check.

    Several servers may start on a shared database at once, so its migration is manual. Raises
    CommandError.
    """
    if not missing_migrations():
        return
    if connection.vendor != "sqlite":
        raise CommandError("The database is not up to date. Run `contextlab migrate`.")
    if not apart:
        call_command("migrate", interactive=False, verbosity=0)
        return
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "contextlab.cli", "migrate", "--verbosity", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    if ended.returncode:
        raise CommandError("The database was not migrated, for the reason above.")
