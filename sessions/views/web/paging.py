"""Cursor pagination: pages do not shift when rows are added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

PAGE = 50

Key = int | datetime


@dataclass(frozen=True, slots=True)
class Cursor:
    """A row's position in a list, and the side on which the page is."""

    older: bool
    key: Key
    row: UUID | int

    def __str__(self) -> str:
        row = self.row.hex if isinstance(self.row, UUID) else str(self.row)
        return f"{'o' if self.older else 'n'}~{_written(self.key)}~{row}"


def read(text: str) -> Cursor | None:
    """Parse a cursor from a URL; None if it is invalid, which means the first page."""
    side, _, rest = text.partition("~")
    key, _, row = rest.partition("~")
    if side not in ("o", "n"):
        return None
    try:
        return Cursor(side == "o", _key(key), UUID(row) if len(row) == 32 else _number(row))
    except ValueError:
        return None


def _written(key: Key) -> str:
    """Avoid the plus sign, which URLs decode as a space."""
    if isinstance(key, datetime):
        return key.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(key)


def _key(text: str) -> Key:
    if "T" in text:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError("no time zone")
        return at
    return _number(text)


def _number(text: str) -> int:
    if len(text) > 18:  # larger than a database integer
        raise ValueError("too long")
    return int(text)


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of rows with cursors to its neighbors; empty if there is none."""

    rows: list[Any]
    newer: str
    older: str


def page(rows: QuerySet[Any], text: str, key: str, size: int = PAGE) -> RowPage:
    """The rows next to the cursor in descending order of `key`, a field or annotation that is never
    null."""
    cursor = read(text)
    back = cursor is not None and not cursor.older
    if cursor is not None:
        side = "gt" if back else "lt"
        beyond = Q(**{f"{key}__{side}": cursor.key})
        level = Q(**{key: cursor.key, f"pk__{side}": cursor.row})
        try:
            # The first is implied by the second, but only it leads into an index.
            rows = rows.filter(**{f"{key}__{side}e": cursor.key}).filter(beyond | level)
        except (ValueError, TypeError):  # a number where this list needs a time
            return page(rows, "", key, size)
    found = list(rows.order_by(*((key, "pk") if back else (f"-{key}", "-pk")))[: size + 1])
    more, found = len(found) > size, found[:size]
    if back:
        found.reverse()
    has_newer = more if back else cursor is not None
    has_older = more if not back else bool(found)
    return RowPage(
        found,
        str(Cursor(False, getattr(found[0], key), found[0].pk)) if found and has_newer else "",
        str(Cursor(True, getattr(found[-1], key), found[-1].pk)) if found and has_older else "",
    )
