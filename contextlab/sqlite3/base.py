"""SQLite as Django speaks it; the form of its parameters is converted once per query."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base


@lru_cache(maxsize=1024)
def _converted(query: str) -> str:
    return str(base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%"))


class SQLiteCursor(base.SQLiteCursorWrapper):
    """Remembers the converted form of queries: most are the same few hundred."""

    def convert_query(self, query: str, *, param_names: Iterable[str] | None = None) -> str:
        """The query with SQLite's own placeholders."""
        if param_names is not None:
            return str(super().convert_query(query, param_names=param_names))
        return _converted(query)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection with such cursors."""

    def create_cursor(self, name: str | None = None) -> Any:  # noqa: ARG002 (Django's signature)
        """A cursor."""
        return self.connection.cursor(factory=SQLiteCursor)
