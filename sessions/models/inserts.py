"""Many rows at once: one prepared INSERT per table, without an object for each row.

Making model objects and compiling a statement for them costs more than the database does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, models

Row = Sequence[Any]


def insert(
    model: type[models.Model], columns: Sequence[str], rows: Sequence[Row], *, known: bool = False
) -> None:
    """Insert rows of values in the order of `columns`; with `known`, rows that exist stay.

    Values are what the database takes: keys of UUID type through `stored_uuid`. Columns that are
    left out must have a default in the database.
    """
    if not rows:
        return
    quote = connection.ops.quote_name
    names = ", ".join(quote(name) for name in columns)
    ignore = " ON CONFLICT DO NOTHING" if known else ""
    table = quote(model._meta.db_table)
    with connection.cursor() as cursor:
        # Names are our own columns', values are parameters.
        cursor.executemany(
            f"INSERT INTO {table} ({names}) VALUES ({_marks(columns)}){ignore}",  # noqa: S608
            rows,
        )


def _marks(columns: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(columns))


def stored_uuid(value: UUID) -> Any:
    """A UUID as this database stores it."""
    return value if connection.features.has_native_uuid_field else value.hex
