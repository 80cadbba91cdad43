"""Whether the store can be written."""

from __future__ import annotations

import logging
import threading
from time import monotonic

from django.conf import settings
from django.db import DatabaseError, connection, transaction

log = logging.getLogger(__name__)

KEPT_SECONDS = 1.0
"""How long an answer is reused: asking needs no login, and a write is expensive."""
_BUSY_MS = 2000

_REASONS = {
    "SQLITE_FULL": "The disk is full.",
    "SQLITE_READONLY": "The database is read-only.",
    "SQLITE_CANTOPEN": "The database cannot be opened.",
    "SQLITE_IOERR": "The disk does not take or give what the database asks.",
    "SQLITE_BUSY": "The database has been locked for two seconds.",
    "DiskFull": "The disk is full.",
    "ReadOnlySqlTransaction": "The database is read-only.",
}


class Readiness:
    """Writes a row in a transaction that removes it again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, float] = ("", 0.0)

    def reason(self) -> str:
        """Why the store cannot be written; "" if it can. Blocks."""
        with self._lock:
            reason, until = self._known
            if monotonic() >= until:
                reason = _reason()
                self._known = reason, monotonic() + KEPT_SECONDS
            return reason


def _reason() -> str:
    try:
        _write()
    except DatabaseError as error:
        log.warning("not ready: %s", _name(error))
        return next(
            (said for name, said in _REASONS.items() if _name(error).startswith(name)),
            "The database does not answer.",
        )
    return ""


def _write() -> None:
    """Insert and delete a browser session that has expired. SQLite and PostgreSQL write their logs
    at this commit, which a rolled-back transaction would not do."""
    patience = settings.DATABASES["default"].get("OPTIONS", {}).get("timeout", 20)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        try:
            with transaction.atomic():
                cursor.execute(
                    "INSERT INTO django_session (session_key, session_data, expire_date)"
                    " VALUES ('ready', '', '2000-01-01 00:00:00+00:00')"
                )
                cursor.execute("DELETE FROM django_session WHERE session_key = 'ready'")
        finally:
            if connection.vendor == "sqlite":
                cursor.execute(f"PRAGMA busy_timeout={int(patience * 1000)}")


def _name(error: BaseException) -> str:
    cause = error.__cause__
    return str(getattr(cause, "sqlite_errorname", type(cause or error).__name__))
