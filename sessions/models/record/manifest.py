"""All entries of a run in context order, as columns, so that a browser can draw any step."""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q

from compaction.context.blocks import KINDS
from sessions.models.record.messages import Block, Message
from sessions.models.record.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.web.shown import cut_text, value
from sessions.models.web.statements import Statement, given_int, given_uuid

_KIND = {kind: index for index, kind in enumerate(KINDS)}

ERROR, PINNED, REPLACEMENT, TOOL_USE, TOOL_RESULT, LATE, MEDIA, ESTIMATED = (
    1, 2, 4, 8, 16, 32, 64, 128,
)  # fmt: skip
"""Bits of an entry's flags; keep in sync with `frontend/src/replay/manifest/manifest.ts`."""

_FORM = (
    f"CASE {{t}}.type WHEN 'tool_use' THEN {TOOL_USE} WHEN 'tool_result' THEN {TOOL_RESULT} "
    f"WHEN 'image' THEN {MEDIA} WHEN 'document' THEN {MEDIA} ELSE 0 END"
)


def table(model: type) -> str:
    """The table name of a model."""
    return str(model._meta.db_table)  # type: ignore[attr-defined]


def _bit(column: str, bit: int) -> str:
    return f"CASE WHEN {column} THEN {bit} ELSE 0 END"


_REVISIONS = f"""
        LEFT JOIN {table(Edit)} ec ON ec.id = e.closed_by_id
        LEFT JOIN {table(Revision)} rc ON rc.id = ec.revision_id
        LEFT JOIN {table(Edit)} eo ON eo.id = e.opened_by_id
        LEFT JOIN {table(Revision)} ro ON ro.id = eo.revision_id
"""
_MESSAGE = f"JOIN {table(Message)} m ON m.id = b.message_id"
_FIRST_TARGET = f"JOIN {table(Block)} b ON b.session_id = n.session_id AND b.position = e.position"
_PLACE = "{p}.position, COALESCE(e.from_step, b.born), COALESCE(e.opened_by_id, 0)"
"""Sort order of entries: by position, the original first, then its replacements, oldest first."""

_ORIGINALS = f"{table(Block)} b {{message}} LEFT JOIN {table(Entry)} e ON e.block_id = b.id"
_ENTRIES = f"{table(Entry)} e JOIN {table(Run)} n ON n.id = e.run_id"
_REPLACEMENTS = f"{_ENTRIES} JOIN {table(Replacement)} p ON p.id = e.replacement_id"


def union(of_block: str, of_replacement: str, *, joined: bool, where: str = "0 = 0") -> str:
    """SQL for a run's entries in context order; parameters: run, session, run (as stored values).

    `joined` adds messages (m) and the revisions that opened (ro) and closed (rc) each entry.
    `where` is a condition on the position of {e}, the original or the entry.
    """
    message, revisions, target = ("", "", "")
    if joined:
        message, revisions, target = _MESSAGE, _REVISIONS, f"{_FIRST_TARGET} {_MESSAGE}"
    return _quoted(f"""
        SELECT {_PLACE.format(p="b")}, {of_block}
        FROM {_ORIGINALS.format(message=message)} AND e.run_id = %s {revisions}
        WHERE b.session_id = %s AND {where.format(e="b")}
        UNION ALL
        SELECT {_PLACE.format(p="e").replace("b.born", "0")}, {of_replacement}
        FROM {_REPLACEMENTS} {target} {revisions}
        WHERE e.run_id = %s AND {where.format(e="e")}
        ORDER BY 1, 2, 3
    """)  # noqa: S608 - table names of our own models


def opened(entries: str) -> str:
    """SQL for the columns of the entries selected by a subquery; pass its parameters twice."""
    joins = f"{_MESSAGE} {_REVISIONS} WHERE e.id IN ({entries})"
    return _quoted(f"""
        SELECT {_PLACE.format(p="e")}, {COLUMNS[0]}
        FROM {_ENTRIES} JOIN {table(Block)} b ON b.id = e.block_id {joins}
        UNION ALL
        SELECT {_PLACE.format(p="e")}, {COLUMNS[1]}
        FROM {_REPLACEMENTS} {_FIRST_TARGET} {joins}
    """)  # noqa: S608 - table names of our own models


COLUMNS = (
    "COALESCE(e.to_step, 0), b.kind, b.tokens, m.seq, b.index, "
    f"{_bit('b.error', ERROR)} + {_bit('m.late', LATE)} + {_bit('b.estimated', ESTIMATED)} + "
    f"{_FORM.format(t='b')}, COALESCE(ro.number, 0), COALESCE(rc.number, 0)",
    "COALESCE(e.to_step, 0), p.kind, p.tokens, m.seq, b.index, "
    f"{REPLACEMENT} + {_FORM.format(t='p')}, COALESCE(ro.number, 0), COALESCE(rc.number, 0)",
)
_NAMES = (
    *("position", "from", "order", "to", "kind", "tokens", "message", "index", "flags"),
    *("edit", "closed"),
)
_PREVIEWS = ("b.preview", "p.preview")
_SHAS = ("b.sha", "p.sha")
_SOURCES = ("CASE WHEN b.kind = 'file' THEN b.file_path ELSE b.tool END", "p.tool")
_IDS = ("b.id, 0", "0, p.id")

Row = tuple[Any, ...]
Columns = dict[str, Sequence[int]]


class Extent(NamedTuple):
    """A part of a run: originals below a position, and revisions up to a number."""

    blocks: int
    head: int


def extent_of(session: Session, run: Run) -> Extent:
    """The extent of a run as of these rows; more may have been stored since."""
    return Extent(session.block_count, run.head)


def _quoted(sql: str) -> str:
    return sql.replace("b.index", 'b."index"')


def stored_id(row: Run | Session) -> Any:
    """The primary key of a row in the form that raw SQL needs."""
    return row.pk.hex if connection.vendor == "sqlite" else row.pk


def parameters(run: Run) -> list[Any]:
    """The parameters for `union`."""
    session = run.session_id.hex if connection.vendor == "sqlite" else run.session_id
    return [stored_id(run), session, stored_id(run)]


def rows(sql: str, values: Sequence[Any]) -> list[Row]:
    """Run raw SQL and return all rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def columns(run: Run, extent: Extent | None = None) -> Columns:
    """Entries in context order, one equally long list per column.

    An entry is in the context of step N if from <= N and (to = 0 or N < to). Tokens are o200k
    counts, to be scaled by the session's ratio. `edit` and `closed` are the revisions that opened
    and closed it, 0 for none.
    """
    found = rows(union(*COLUMNS, joined=True), parameters(run))
    return by_column(found if extent is None else within(found, extent))


def replaced_texts(run: Run, step: int) -> dict[tuple[int, int], str]:
    """Blob names of the replacements in a step's context, by position and number of the opening
    revision."""
    found = _REPLACED.rows(run=run.pk, step=step)
    return {(position, number or 0): sha for position, number, sha in found}


_REPLACED = Statement(
    lambda: Entry.objects.filter(
        Q(to_step=None) | Q(to_step__gt=given_int("step")),
        run_id=given_uuid("run"),
        replacement__isnull=False,
        from_step__lte=given_int("step"),
    ).values_list("position", "opened_by__revision__number", "replacement__sha")
)


def within(found: list[Row], extent: Extent) -> list[Row]:
    """Drop rows, and closings, that were stored while the query ran."""
    return [
        row if row[-1] <= extent.head else (*row[:3], 0, *row[4:-1], 0)
        for row in found
        if row[0] < extent.blocks and row[-2] <= extent.head
    ]


def by_column(found: list[Row]) -> Columns:
    """Turn rows of `COLUMNS` into columns."""
    by_name = zip(*found, strict=True) if found else ((),) * len(_NAMES)
    table: Columns = dict(zip(_NAMES, by_name, strict=True))
    del table["order"]
    table["kind"] = [_KIND[kind] for kind in table["kind"]]  # type: ignore[index]
    return table


class _Places:
    """Where the entries of a run are: the position of each, and its place among those there.

    Every position has exactly one entry that no revision opened, and it comes first. So positions
    follow from those of the other entries, and few rows need to be read.
    """

    def __init__(self, session: Session, run: Run) -> None:
        self._others = _OTHERS.column(run=run.pk)
        self._indexes = [position + 1 + nth for nth, position in enumerate(self._others)]
        self.count = session.block_count + len(self._others)

    def of(self, index: int) -> tuple[int, int]:
        """Position of an entry by its index in context order, and how many come before it there."""
        position = index - bisect_right(self._indexes, index)
        return position, index - position - bisect_left(self._others, position)


_OTHERS = Statement(
    lambda: (
        Entry.objects.filter(run_id=given_uuid("run"), opened_by__isnull=False)
        .order_by("position")
        .values_list("position")
    )
)


def _between(session: Session, run: Run, of: tuple[str, str], start: int, end: int) -> list[Row]:
    """Rows of the entries [start, end) in context order."""
    places = _Places(session, run)
    end = min(end, places.count)
    if start >= end:
        return []
    (first, skip), (last, _) = places.of(start), places.of(end - 1)
    where = f"{{e}}.position BETWEEN {int(first)} AND {int(last)}"
    found = rows(union(*of, joined=False, where=where), parameters(run))
    return found[skip : skip + end - start]


def previews(session: Session, run: Run, start: int, end: int) -> list[str]:
    """One-line previews of the entries [start, end) in context order."""
    return [cut_text(row[3]) for row in _between(session, run, _PREVIEWS, start, end)]


def previews_at(session: Session, run: Run, indexes: Sequence[int]) -> list[str | None]:
    """One-line previews of entries by their index in context order; None beyond the end."""
    found = _at(session, run, indexes, _PREVIEWS)
    return [None if line is None else cut_text(line) for line in found]


def shas_at(session: Session, run: Run, indexes: Sequence[int]) -> list[str | None]:
    """Names of the blobs of entries by their index; None beyond the end."""
    return _at(session, run, indexes, _SHAS)


def sources(run: Run) -> list[str]:
    """The file or the tool of each entry in context order; empty for neither."""
    return [value(row[3]) for row in rows(union(*_SOURCES, joined=False), parameters(run))]


def _at(
    session: Session, run: Run, indexes: Sequence[int], of: tuple[str, str]
) -> list[str | None]:
    """A column of entries by their index in context order; None beyond the end."""
    places = _Places(session, run)
    wanted = [places.of(index) if index < places.count else (-1, 0) for index in indexes]
    listed = ", ".join(str(position) for position in {-1, *(position for position, _ in wanted)})
    found: dict[int, list[str]] = {}
    where = f"{{e}}.position IN ({listed})"
    for row in rows(union(*of, joined=False, where=where), parameters(run)):
        found.setdefault(row[0], []).append(row[3])
    there = ((found.get(position, []), nth) for position, nth in wanted)
    return [lines[nth] if nth < len(lines) else None for lines, nth in there]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """An entry in context order: an original block or a replacement."""

    block: Block | None
    replacement: Replacement | None


def entries_between(session: Session, run: Run, start: int, end: int) -> list[ManifestEntry]:
    """The entries [start, end) in context order."""
    found = _between(session, run, _IDS, start, end)
    blocks = Block.objects.select_related("message").in_bulk([row[3] for row in found])
    replacements = Replacement.objects.in_bulk([row[4] for row in found])
    return [ManifestEntry(blocks.get(row[3]), replacements.get(row[4])) for row in found]


def pack(data: bytes) -> bytes:
    """Compress JSON for storage with a run."""
    return zlib.compress(data, 6)


def unpack(stored: bytes | memoryview) -> bytes:
    """Decompress stored JSON; an empty object if a run has none."""
    return zlib.decompress(bytes(stored)) if stored else b"{}"
