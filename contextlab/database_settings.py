"""The database that the settings choose."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import dj_database_url

from contextlab import environment as env

_POOL_SECONDS = 10
"""How long a thread waits for a connection of the pool; then it answers 503."""


def database(folder: Path) -> dict[str, Any]:
    """Django's settings for DATABASE_URL; without it, for SQLite in a folder. Raises ValueError."""
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{folder / 'contextlab.sqlite3'}"
    made: dict[str, Any] = {**dj_database_url.parse(url), "CONN_MAX_AGE": 0}
    if made["ENGINE"].endswith("sqlite3"):
        return made | _SQLITE
    if made["ENGINE"].endswith("postgresql"):
        env.needs("DATABASE_URL with PostgreSQL", "postgres", "psycopg")
    made["CONN_HEALTH_CHECKS"] = True
    # Without a pool each of up to 64 threads that answer requests has a connection.
    if most := int(env.number("DATABASE_POOL", 0)):
        made.setdefault("OPTIONS", {})["pool"] = {
            "min_size": min(2, most),
            "max_size": most,
            "timeout": _POOL_SECONDS,
        }
    return made


_SQLITE: dict[str, Any] = {
    "ENGINE": "contextlab.sqlite3",
    "OPTIONS": {
        "timeout": 20,  # seconds
        # Upgrading a read to a write would fail immediately; IMMEDIATE waits.
        "transaction_mode": "IMMEDIATE",
        # FULL: responses with 2xx survive a power failure, not only a crash.
        "init_command": (
            "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA temp_store=MEMORY;"
            # Mapping widens the race in which SQLite loses committed rows when connections close
            # (contextlab/database.py; docs/decisions.md, 40 and 45).
            "PRAGMA mmap_size=0;PRAGMA journal_size_limit=67108864;"
            "PRAGMA cache_size=-4000;"
            # What is deleted leaves the file: it is overwritten with zeros (docs/erasure).
            "PRAGMA secure_delete=ON;"
        ),
    },
    # A file, because server and job processes share it; per process, because several test suites
    # may run in one checkout.
    "TEST": {"NAME": Path(tempfile.gettempdir()) / f"contextlab-{os.getpid()}.sqlite3"},
}
