"""The form of an archive: rows by column and the contents of blocks, compressed together.

Of each table a part has up to AT_ONCE rows. Keys stay as they are, so that what refers to a row
still does after it was away; the hash of a content is left out, as it follows from the content.
Columns that a later version adds get their defaults, and those that it removes are ignored.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db import connection
from django.db.models import DateTimeField, ForeignKey, Model, QuerySet, UUIDField

from sessions.models import Block, Edit, Entry, Message, ModelCall, Pin, Retry, Session
from sessions.models.record.values import contents

AT_ONCE = 400
"""Rows per part and transaction: others that write wait for one of them at most."""

VERSION = 1
_LENGTH = 4
"""Bytes before each part that say how long it is."""


class UnreadableArchive(Exception):
    """An archive that this version cannot read; `str()` says why."""


class ArchivePart(msgspec.Struct):
    """Rows of one table: values by column, and for blocks the contents that no part before has.

    The column `sha` holds the number of a content in the archive, from 0 on.
    """

    table: str
    columns: dict[str, list[Any]]
    contents: list[bytes] = msgspec.field(default_factory=list)
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class ArchivedTable:
    """A table whose rows of a session an archive takes: `session` leads to the session. With
    `columns`, the rows stay, and only these become empty."""

    name: str
    model: type[Model]
    session: str
    columns: tuple[str, ...] = ()
    empty: Any = None

    def rows_of(self, session: Session) -> QuerySet[Any]:
        """The rows of a session, in the order of their keys."""
        rows = self.model._default_manager.filter(**{self.session: session.pk})
        for column in self.columns:
            rows = rows.exclude(**{column: self.empty})
        return rows.order_by("pk")

    @property
    def names(self) -> list[str]:
        """The columns that an archive has."""
        every = [one.attname for one in self.model._meta.concrete_fields]
        return ["id", *self.columns] if self.columns else every


TABLES = (
    ArchivedTable("message", Message, "session"),
    ArchivedTable("pin", Pin, "session"),
    ArchivedTable("retry", Retry, "session"),
    ArchivedTable("block", Block, "session"),
    ArchivedTable("entry", Entry, "run__session"),
    ArchivedTable("edit", Edit, "revision__run__session", ("summary_id",)),
    # The rest of a call is in the sums of many pages.
    ArchivedTable("call", ModelCall, "session", ("usage_raw",), ""),
)
"""In the order of an archive: a row comes after those it refers to."""

BY_NAME = {table.name: table for table in TABLES}


@dataclass(slots=True)
class PackedSession:
    """What an archive of a session holds: its bytes, rows by table, and hashes of the contents."""

    data: bytes = b""
    rows: dict[str, int] = field(default_factory=dict)
    text_bytes: int = 0
    numbers: dict[str, int] = field(default_factory=dict)


def pack(session: Session) -> PackedSession:
    """Read a session into the form of an archive. Raises MissingBlob, DamagedBlob."""
    packed, made = PackedSession(), io.BytesIO()
    with lzma.open(made, "wb") as file:
        for table in TABLES:
            for part in _parts(session, table, packed):
                encoded = msgspec.msgpack.encode(part)
                file.write(len(encoded).to_bytes(_LENGTH) + encoded)
    packed.data = made.getvalue()
    return packed


def _parts(session: Session, table: ArchivedTable, packed: PackedSession) -> Iterator[ArchivePart]:
    last: Any = None
    while True:
        rows = table.rows_of(session)
        rows = rows if last is None else rows.filter(pk__gt=last)
        found = list(rows.values_list(*table.names)[:AT_ONCE])
        if not found:
            return
        last = found[-1][0]
        packed.rows[table.name] = packed.rows.get(table.name, 0) + len(found)
        values = map(list, zip(*found, strict=True))
        columns = dict(zip(table.names, values, strict=True))
        part = ArchivePart(table.name, columns)
        if table.model is Block:
            packed.text_bytes += sum(columns["bytes"])
            part.contents = _take_contents(session, columns, packed.numbers)
        yield part


def _take_contents(
    session: Session, columns: dict[str, list[Any]], numbers: dict[str, int]
) -> list[bytes]:
    """Put numbers in place of hashes; return the contents that have a new one."""
    new = [sha for sha in dict.fromkeys(columns["sha"]) if sha not in numbers]
    data = contents(session, new)
    for sha in new:
        numbers[sha] = len(numbers)
    columns["sha"] = [numbers[sha] for sha in columns["sha"]]
    return [data[sha] for sha in new]


def parts_of(data: bytes) -> Iterator[ArchivePart]:
    """The parts of an archive, one at a time. Raises UnreadableArchive."""
    decoder = msgspec.msgpack.Decoder(ArchivePart)
    try:
        with lzma.open(io.BytesIO(data)) as file:
            while length := file.read(_LENGTH):
                part = decoder.decode(file.read(int.from_bytes(length)))
                if part.version > VERSION or part.table not in BY_NAME:
                    raise UnreadableArchive("A newer version of ContextLab wrote the archive.")
                yield part
    except (lzma.LZMAError, EOFError, msgspec.MsgspecError) as error:
        raise UnreadableArchive(f"The archive is damaged: {error}.") from error


def rows_in(part: ArchivePart, shas: Sequence[str]) -> tuple[list[str], list[Sequence[Any]]]:
    """The columns and rows of a part in the database's form; `shas` are the hashes of all contents
    so far."""
    model = BY_NAME[part.table].model
    known = {one.attname: one for one in model._meta.concrete_fields}
    columns = {name: values for name, values in part.columns.items() if name in known}
    if model is Block:
        columns["sha"] = [shas[number] for number in columns["sha"]]
    for name in columns:
        column = known[name]
        target = column.target_field if isinstance(column, ForeignKey) else column
        if isinstance(target, UUIDField | DateTimeField):
            columns[name] = [
                target.get_db_prep_save(target.to_python(value), connection)
                for value in columns[name]
            ]
    return list(columns), list(zip(*columns.values(), strict=True))


def texts_in(data: bytes) -> Iterable[bytes]:
    """The contents of an archive. Raises UnreadableArchive."""
    return (content for part in parts_of(data) for content in part.contents)
