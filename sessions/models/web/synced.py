"""When commits wait for the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_LATER = {
    "sqlite": ("PRAGMA synchronous=NORMAL", "PRAGMA synchronous=FULL"),
    "postgresql": ("SET synchronous_commit=off", "SET synchronous_commit=on"),
}
"""What turns waiting off and on again, by the database's kind."""


@contextmanager
def synced_later() -> Iterator[None]:
    """Commit without waiting for the disk. The next commit after this waits for these, too: one
    log has all of them in order. Do not report them as stored before it."""
    later, at_once = _LATER[connection.vendor]
    if connection.in_atomic_block:
        # The outer transaction decides, and SQLite refuses the change.
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(later)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(at_once)
