"""What deleted rows leave behind in the files of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from django.db import ProgrammingError, connection
from django.db.backends.utils import CursorWrapper

from sessions.actions.search.indexing import merged

PATIENCE = 120.0
"""Seconds to wait for readers that keep what was deleted in use."""

PAUSE = 0.1

_OLDER_READERS = """
SELECT count(*) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (
    age(backend_xid) > age(%(deleted)s::xid)
    OR datname = current_database() AND age(backend_xmin) > age(%(deleted)s::xid)
)
"""

Heard = Callable[[], None]
"""Called between the parts of the work."""


class StillRead(Exception):
    """A reader kept what was deleted in use all the time."""


def remove(tables: Iterable[str], heard: Heard) -> None:
    """Make the database forget deleted rows: merge the search index, and empty the log of SQLite,
    or have PostgreSQL remove dead rows. Call outside any transaction. Raises StillRead."""
    if connection.vendor == "sqlite":
        for _ in merged():
            heard()
        _rewrite_once()
        _empty_log(heard)
        return
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f'VACUUM (ANALYZE) "{table}"')
            heard()


def rewrite(heard: Heard) -> bool:
    """Rewrite every table, and PostgreSQL's statistics of them, so that no free space of a file
    holds deleted rows, and end the files of its log; False if that needs more rights. Others wait
    for a table that is rewritten. Call outside any transaction. Raises StillRead, and
    OperationalError where a table stays in use for PATIENCE."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("VACUUM")
            _empty_log(heard)
            return True
        cursor.execute(f"SET lock_timeout = {int(PATIENCE * 1000)}")
        _await_older_readers(heard)
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'VACUUM (FULL, ANALYZE) "{table}"')
            heard()
        # ANALYZE keeps samples of the texts in columns.
        cursor.execute("VACUUM (FULL) pg_catalog.pg_statistic")
        try:
            # Old files of the log are used again under new names: each is filled once.
            cursor.execute("SELECT count(*) FROM pg_ls_waldir()")
            for _ in range(cursor.fetchone()[0] + 2):
                cursor.execute("SELECT pg_switch_wal()")
                cursor.execute("CHECKPOINT")
                heard()
        except ProgrammingError:
            return False
    return True


def _rewrite_once() -> None:
    """Rewrite a file that an earlier release wrote: it did not overwrite what it deleted or moved,
    so that parts of texts may stand in free space. `user_version` is 1 once there are none."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA user_version")
        if cursor.fetchone()[0] < 1:
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA user_version = 1")


def _await_older_readers(heard: Heard) -> None:
    """Return once no transaction of PostgreSQL can read what was deleted before: a rewrite copies
    what one still may. Raises StillRead."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::xid::text")
        deleted = cursor.fetchone()[0]
        _await_none(cursor, _OLDER_READERS, {"deleted": deleted}, heard)


def _empty_log(heard: Heard) -> None:
    with connection.cursor() as cursor:
        _await_none(cursor, "PRAGMA wal_checkpoint(TRUNCATE)", None, heard)


def _await_none(
    cursor: CursorWrapper, asked: str, given: Mapping[str, str] | None, heard: Heard
) -> None:
    """Ask until the answer is 0. Raises StillRead after PATIENCE."""
    until = time.monotonic() + PATIENCE
    while True:
        cursor.execute(asked, given)
        if not cursor.fetchone()[0]:
            return
        if time.monotonic() > until:
            raise StillRead
        heard()
        time.sleep(PAUSE)
