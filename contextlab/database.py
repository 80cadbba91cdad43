"""Keep one SQLite connection open for the life of each process.

POSIX locks belong to the process, and `close()` of any descriptor of a file drops all that the
process has on it. SQLite's `unixClose` therefore keeps a descriptor open while the process has
locks; but it checks that (`nLock`) first, releases its mutex, and closes then. A second thread can
take a lock in between, and loses it. A second process then believes that it is the last user and
empties the log with rows that are committed (same code in 3.40 and 3.54). A connection that is
never closed has a lock at every such check, so that nothing is closed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

KEPT_SECONDS = 600

LOCK_SECONDS = 20
"""How long a statement waits for a lock on PostgreSQL, as on SQLite; then a request gets 503."""

_held: dict[tuple[int, int, int], sqlite3.Connection] = {}
_holding = threading.Lock()


def hold_connections() -> None:
    """Keep one connection open to each SQLite file that this process opens."""
    connection_created.connect(_hold)


def holds(connection: BaseDatabaseWrapper) -> bool:
    """Return whether this process holds a connection to the file of this one."""
    return _key(Path(str(connection.settings_dict["NAME"]))) in _held


def keep_connections() -> None:
    """Keep each thread's connection open between requests and tasks, unless there is a pool:
    opening one, with its PRAGMAs, costs more than most requests."""
    for settings in connections.settings.values():
        if not settings.get("OPTIONS", {}).get("pool"):
            settings["CONN_MAX_AGE"] = KEPT_SECONDS


def bound_waits() -> None:
    """Let no statement on PostgreSQL wait for a lock without end.

    Not as an option of the connection, which PgBouncer refuses.
    """
    connection_created.connect(bound_wait)


def bound_wait(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Let statements of a connection wait for LOCK_SECONDS."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")


def _hold(connection: BaseDatabaseWrapper, **_: Any) -> None:
    name = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not name.is_file():
        return
    key = _key(name)
    with _holding:
        if key in _held:
            return
        held = sqlite3.connect(name, check_same_thread=False, isolation_level=None)
        held.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the file and its log
        _held[key] = held


def _key(name: Path) -> tuple[int, int, int]:
    # Per process, because a forked child must not use its parent's connections; per file rather
    # than name, because a restore replaces the file.
    file = name.stat()
    return os.getpid(), file.st_dev, file.st_ino
