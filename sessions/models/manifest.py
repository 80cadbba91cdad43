"""All entries of a run in context order, as columns: what a browser needs to draw any step."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import connection

from compaction.context import KINDS
from sessions.models.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.sessions import Block, Message, Session

_KIND = {kind: index for index, kind in enumerate(KINDS)}

ERROR, PINNED, REPLACEMENT, TOOL_USE, TOOL_RESULT, LATE, MEDIA, ESTIMATED = (
    1, 2, 4, 8, 16, 32, 64, 128,
)  # fmt: skip
"""Bits of an entry's flags; `frontend/src/replay/manifest.ts` repeats them."""

_FORM = (
    f"CASE {{t}}.type WHEN 'tool_use' THEN {TOOL_USE} WHEN 'tool_result' THEN {TOOL_RESULT} "
    f"WHEN 'image' THEN {MEDIA} WHEN 'document' THEN {MEDIA} ELSE 0 END"
)


def _table(model: type) -> str:
    return str(model._meta.db_table)  # type: ignore[attr-defined]


def _bit(column: str, bit: int) -> str:
    return f"CASE WHEN {column} THEN {bit} ELSE 0 END"


_REVISIONS = f"""
        LEFT JOIN {_table(Edit)} ec ON ec.id = e.closed_by_id
        LEFT JOIN {_table(Revision)} rc ON rc.id = ec.revision_id
        LEFT JOIN {_table(Edit)} eo ON eo.id = e.opened_by_id
        LEFT JOIN {_table(Revision)} ro ON ro.id = eo.revision_id
"""
_MESSAGE = f"JOIN {_table(Message)} m ON m.id = b.message_id"
_FIRST_TARGET = f"JOIN {_table(Block)} b ON b.session_id = n.session_id AND b.position = e.position"


def _union(of_block: str, of_replacement: str, *, joined: bool) -> str:
    """Entries of a run in context order; parameters: run, session, run (as stored values).

    `joined` brings in messages (m) and the revisions that opened (ro) and closed (rc) an entry.
    """
    message, revisions, target = ("", "", "")
    if joined:
        message, revisions, target = _MESSAGE, _REVISIONS, f"{_FIRST_TARGET} {_MESSAGE}"
    return f"""
        SELECT b.position, COALESCE(e.from_step, b.born), {of_block}
        FROM {_table(Block)} b {message}
        LEFT JOIN {_table(Entry)} e ON e.block_id = b.id AND e.run_id = %s {revisions}
        WHERE b.session_id = %s
        UNION ALL
        SELECT e.position, e.from_step, {of_replacement}
        FROM {_table(Entry)} e
        JOIN {_table(Run)} n ON n.id = e.run_id
        JOIN {_table(Replacement)} p ON p.id = e.replacement_id {target} {revisions}
        WHERE e.run_id = %s
        ORDER BY 1, 2
    """  # noqa: S608 - table names of our own models


_COLUMNS = (
    "COALESCE(e.to_step, 0), b.kind, b.tokens, m.seq, b.index, "
    f"{_bit('b.error', ERROR)} + {_bit('m.late', LATE)} + {_bit('b.estimated', ESTIMATED)} + "
    f"{_FORM.format(t='b')}, COALESCE(ro.number, 0), COALESCE(rc.number, 0)",
    "COALESCE(e.to_step, 0), p.kind, p.tokens, m.seq, b.index, "
    f"{REPLACEMENT} + {_FORM.format(t='p')}, COALESCE(ro.number, 0), COALESCE(rc.number, 0)",
)
_NAMES = ("position", "from", "to", "kind", "tokens", "message", "index", "flags", "edit", "closed")
_PREVIEWS = ("b.preview", "p.preview")
_IDS = ("b.id, 0", "0, p.id")


def _quoted(sql: str) -> str:
    return sql.replace("b.index", 'b."index"')


def _parameters(run: Run) -> list[Any]:
    if connection.vendor == "sqlite":
        return [run.pk.hex, run.session_id.hex, run.pk.hex]
    return [run.pk, run.session_id, run.pk]


def columns(run: Run) -> dict[str, Sequence[int]]:
    """Entries in context order, one list per column, as long as there are entries.

    An entry stands at step N where from <= N and (to = 0 or N < to). Tokens are o200k counts, to
    be scaled by the ratio of the session.
    """
    with connection.cursor() as cursor:
        cursor.execute(_quoted(_union(*_COLUMNS, joined=True)), _parameters(run))
        rows = cursor.fetchall()
    if not rows:
        return {name: [] for name in _NAMES}
    by_column = list(zip(*rows, strict=True))
    table: dict[str, Sequence[int]] = dict(zip(_NAMES, by_column, strict=True))
    table["kind"] = [_KIND[kind] for kind in by_column[_NAMES.index("kind")]]
    return table


class _Opened(msgspec.Struct):
    """Of the kept columns, the one that tells positions."""

    edit: list[int]


def _window(session: Session, run: Run, start: int, end: int) -> tuple[int, int, int] | None:
    """First and last position of the entries [start, end), and entries to skip at the first.

    Every position has one entry that no revision opened, and it comes first there: so the
    positions follow from the column of opening revisions, and few rows need to be read.
    """
    opened = msgspec.json.decode(entries_json(session, run), type=_Opened).edit
    end = min(end, len(opened))
    if start >= end:
        return None
    position = opened[: start + 1].count(0) - 1
    first = start
    while first and opened[first] != 0:
        first -= 1
    return position, position + opened[start + 1 : end].count(0), start - first


def _between(
    session: Session, run: Run, columns: tuple[str, str], start: int, end: int
) -> list[tuple[Any, ...]]:
    """Rows of the entries [start, end) in context order."""
    window = _window(session, run, start, end)
    if window is None:
        return []
    first, last, skip = window
    bounds = f"BETWEEN {int(first)} AND {int(last)}"
    sql = _quoted(_union(*columns, joined=False))
    sql = sql.replace("WHERE b.session_id", f"WHERE b.position {bounds} AND b.session_id")
    sql = sql.replace("WHERE e.run_id", f"WHERE e.position {bounds} AND e.run_id")
    with connection.cursor() as cursor:
        cursor.execute(sql, _parameters(run))
        return cursor.fetchall()[skip : skip + end - start]


def previews(session: Session, run: Run, start: int, end: int) -> list[str]:
    """One line for each of the entries [start, end) in context order."""
    return [row[2] for row in _between(session, run, _PREVIEWS, start, end)]


@dataclass(frozen=True, slots=True)
class Standing:
    """One entry by its place in context order: an original block or a replacement."""

    block: Block | None
    replacement: Replacement | None


def entry_at(session: Session, run: Run, index: int) -> Standing | None:
    """The entry at a place in context order; None beyond the end."""
    rows = _between(session, run, _IDS, index, index + 1)
    if not rows:
        return None
    _, _, block, replacement = rows[0]
    if block:
        return Standing(Block.objects.select_related("message").get(pk=block), None)
    return Standing(None, Replacement.objects.get(pk=replacement))


def entries_json(session: Session, run: Run) -> bytes:
    """Columns for the browser as JSON: the kept ones, or read afresh if rows were added."""
    if run.entries_key == _entries_key(session, run):
        return unpack(run.entries_packed)
    return _entries_json(run)


def keep_entries(session: Session, run: Run) -> None:
    """Keep the columns of a run whose rows have just been written; the caller saves the run."""
    run.entries_packed = pack(_entries_json(run))
    run.entries_key = _entries_key(session, run)


def _entries_key(session: Session, run: Run) -> str:
    return f"{session.block_count}-{run.head}"


def _entries_json(run: Run) -> bytes:
    table = columns(run)
    del table["position"]
    return msgspec.json.encode(table)


def pack(data: bytes) -> bytes:
    """JSON as it is stored with a run."""
    return zlib.compress(data, 6)


def unpack(stored: bytes | memoryview) -> bytes:
    """Stored JSON again; an empty object where a run has none."""
    return zlib.decompress(bytes(stored)) if stored else b"{}"
