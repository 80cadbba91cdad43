"""What an export consists of: tables of a session's rows, and the line of each row.

A line is a row's columns by name. Rows of other tables are named by their number in the file,
stored bytes are written as the content they hold, times in ISO format. What follows from other
rows (figures of steps, sums, the search index) is left out: an import computes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import (
    BooleanField,
    CharField,
    DateTimeField,
    Field,
    ForeignKey,
    JSONField,
    Model,
    TextField,
)
from django.utils import timezone

from compaction.context import wire
from sessions.importers.decoded import clean
from sessions.models import (
    Block,
    Board,
    Budget,
    Edit,
    Entry,
    FactLedger,
    ManagedContext,
    Message,
    ModelCall,
    NotificationChannel,
    Pin,
    Policy,
    PolicyVersion,
    Replacement,
    Retry,
    Review,
    ReviewItem,
    Revision,
    Rollout,
    Run,
    SentRecitation,
    Session,
    Share,
    StepNote,
    ToolGraph,
)

Line = dict[str, Any]

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
CLOCKS_APART = timedelta(hours=1)
"""Times of an export lie between, up to now; others could not be shown, or stay the newest."""


@dataclass(frozen=True, slots=True)
class Content:
    """How a column of bytes is written: as the value that they hold."""

    read: Callable[[bytes], Any]
    written: Callable[[Any], bytes]
    is_blob: bool = True
    """The column has the SHA-256 of the team's blob; otherwise the bytes."""


_BLOCK = Content(wire.decode, wire.encode)
TEXT = Content(bytes.decode, lambda text: str(text).encode())
_PACKED = Content(
    lambda data: zlib.decompress(data).decode(),
    lambda text: zlib.compress(str(text).encode()),
    is_blob=False,
)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one model: `session` leads from a row to its session. `contents` are columns of
    bytes, `left_out` is what follows from other rows or belongs to this server."""

    name: str
    model: type[Model]
    session: str
    left_out: frozenset[str] = frozenset()
    contents: tuple[tuple[str, Content], ...] = ()
    order: tuple[str, ...] = ("pk",)

    def columns(self) -> list[Field[Any, Any]]:
        """The columns that are written, without those of bytes."""
        return [
            one
            for one in self.model._meta.concrete_fields
            if one.name not in self.left_out
            and one.name not in dict(self.contents)
            and (not one.primary_key or self.model is ManagedContext or one.is_relation)
            and (not isinstance(one, ForeignKey) or one.related_model in REFERRED)
        ]


def _out(names: str) -> frozenset[str]:
    return frozenset(names.split())


TABLES = (
    Table(
        "session",
        Session,
        "pk",
        _out(
            "team demo rollout paused sparkline measured version "
            "tallied_version tallied_compacted tally_day indexed_blocks archived unpacked"
        ),
    ),
    Table("message", Message, "session"),
    Table("block", Block, "session", _out("bytes"), (("sha", _BLOCK),)),
    Table("call", ModelCall, "session"),
    Table("pin", Pin, "session"),
    Table("retry", Retry, "session"),
    Table("tool_graph", ToolGraph, "session"),
    Table(
        "run",
        Run,
        "session",
        _out(
            "columns entries_packed entries_key tail bases settled generation reopened figures "
            "engine created indexed_head rewritten"
        ),
        order=("origin",),
    ),
    Table("revision", Revision, "run__session"),
    Table("replacement", Replacement, "run__session", contents=(("sha", _BLOCK),)),
    Table("edit", Edit, "revision__run__session"),
    Table("entry", Entry, "run__session"),
    Table(
        "context",
        ManagedContext,
        "run__session",
        contents=(("knowledge", TEXT),),
        order=("created", "pk"),
    ),
    Table("recitation", SentRecitation, "run__session", contents=(("data", _PACKED),)),
    Table("ledger", FactLedger, "revision__run__session"),
    Table(
        "review_item",
        ReviewItem,
        "revision__run__session",
        _out("team added_by"),
        order=("revision",),  # its own ids are random
    ),
    Table("review", Review, "item__revision__run__session"),
    Table("step_note", StepNote, "session"),
)
"""In the order of the file: a row comes after those it refers to. Rows of simulated runs, which a
policy makes again, are not exported; those of a team are in `actions/imports/team_tables.py`."""

BY_NAME = {table.name: table for table in TABLES}

REFERRED = frozenset(
    {Policy, PolicyVersion, Rollout, Board, Share, Budget, NotificationChannel}
    | {table.model for table in TABLES}
)
"""Models to whose rows a line may refer."""


def own(table: Table, session: Session) -> Any:
    """A session's rows of a table, in a stable order."""
    rows = table.model._default_manager.filter(**{table.session: session.pk})
    if table.model is Run or "run__" in table.session:
        origin = table.session.removesuffix("session") + "origin"
        rows = rows.exclude(**{origin: Run.Origin.SIMULATED})
    return rows.order_by(*table.order)


def value_of(column: Field[Any, Any], row: Model, numbers: dict[tuple[type, Any], int]) -> Any:
    """A column as it is written; the parent of the session that is exported is left out."""
    value = getattr(row, column.attname)
    if isinstance(column, ForeignKey) and value is not None:
        return numbers.get((column.related_model, value))
    return value.isoformat() if isinstance(column, DateTimeField) and value is not None else value


def read_value(column: Field[Any, Any], value: Any, rows: dict[tuple[type, Any], Any]) -> Any:
    """The value of a column in a line; `rows` are those of earlier lines. Raises ValueError,
    OverflowError, ValidationError."""
    if value is None:
        if not column.null:
            raise ValueError("is missing")
        return None
    if isinstance(column, ForeignKey):
        if not isinstance(value, int) or (column.related_model, value) not in rows:
            raise ValueError("refers to a line that does not precede it")
        return rows[column.related_model, value]
    if isinstance(column, JSONField):
        return _read_json(column, value)
    wanted = next((kind for field, kind in _KINDS.items() if isinstance(column, field)), int)
    if type(value) is not wanted or (wanted is str and clean(value) != value):
        raise ValueError(f"is not {'text' if wanted is str else 'a value of its kind'}")
    value = column.to_python(value)
    if isinstance(value, datetime):
        _check_time(value)
    column.run_validators(value)
    if column.choices and value not in dict(column.flatchoices):
        raise ValueError("is not one of the values that it may have")
    return value


def _check_time(value: datetime) -> None:
    latest = timezone.now() + CLOCKS_APART
    if value.tzinfo is None or not EARLIEST <= value <= latest:
        raise ValueError("is not a time with a zone, in the past")


def _read_json(column: JSONField[Any, Any], value: Any) -> Any:
    # Without a default (documents, what a request overrides) it is an object, too.
    kind = type(column.get_default()) if column.has_default() else dict
    if not isinstance(value, kind):
        raise ValueError(f"is not {'an object' if kind is dict else 'a list'}")
    if clean(value) != value:
        raise ValueError("has characters that cannot be stored")
    return value


_KINDS = {CharField: str, TextField: str, DateTimeField: str, BooleanField: bool}
"""What columns hold in a line; others hold whole numbers."""
