"""Keep one SQLite connection open for the life of each process.

SQLite keeps POSIX locks per process: a thread that closes the last connection to a file can drop
locks that another thread has just taken. A second process may then believe that it is the last user
and truncate the log of committed rows. One connection that is never closed prevents this.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

KEPT_SECONDS = 600

_held: dict[tuple[int, int, int], sqlite3.Connection] = {}


def hold_connections() -> None:
    """Keep one connection open to each SQLite file that this process opens."""
    connection_created.connect(_hold)


def keep_connections() -> None:
    """Keep each thread's connection open between requests and tasks, unless there is a pool:
    opening one, with its PRAGMAs, costs more than most requests."""
    for settings in connections.settings.values():
        if not settings.get("OPTIONS", {}).get("pool"):
            settings["CONN_MAX_AGE"] = KEPT_SECONDS


def _hold(connection: BaseDatabaseWrapper, **_: Any) -> None:
    name = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not name.is_file():
        return
    file = name.stat()
    # Per process, because a forked child must not use its parent's connections; per file rather
    # than name, because a restore replaces the file.
    key = (os.getpid(), file.st_dev, file.st_ino)
    if key in _held:
        return
    held = sqlite3.connect(name, check_same_thread=False, isolation_level=None)
    held.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the file and its log
    _held[key] = held
