"""New and changed entries of a run since a known state, and the columns stored with a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from sessions.models.record import manifest
from sessions.models.record.manifest import Columns, Extent, Row
from sessions.models.record.packing import packed, unpacked
from sessions.models.record.revisions import Edit, Entry, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_int, given_uuid

_SENT = ("from", "to", "kind", "tokens", "message", "index", "flags", "edit", "closed")

Place = Callable[[Row], int]


class Delta(NamedTuple):
    """Changes to a run's entries. `entries` are columns of new entries, `at` their indexes in the
    new context order, ascending; `changed` holds `at`, `to` and `closed` of older entries."""

    entries: Columns
    changed: Columns


def delta(run: Run, old: Extent, new: Extent, known: int) -> Delta:
    """Compute what a client with the `known` entries of one extent lacks of a later one.

    Reads only new rows; if there are newer revisions, also the positions of all entries opened by
    revisions, because these determine the order.
    """
    return _delta(run, new, known, *news(run, old, new))


def news(run: Run, old: Extent, new: Extent) -> tuple[list[Row], list[Row]]:
    """Entries added since an older extent, and older entries closed since then: rows of
    `manifest.COLUMNS` in context order."""
    where = f"{{e}}.position >= {int(old.blocks)} AND {{e}}.position < {int(new.blocks)}"
    sql = manifest.union(*manifest.COLUMNS, joined=True, where=where)
    fresh = manifest.within(manifest.rows(sql, manifest.parameters(run)), new)
    if new.head == old.head or not old.blocks:
        return fresh, []
    between = [manifest.stored_id(run), old.head, new.head, old.blocks]
    opened = manifest.rows(manifest.opened(_entries_between("opened_by_id")), between * 2)
    closed = manifest.rows(manifest.opened(_entries_between("closed_by_id")), between * 2)
    changed = [row for row in manifest.within(closed, new) if row[-2] <= old.head]
    return sorted([*fresh, *manifest.within(opened, new)], key=_order), sorted(changed, key=_order)


def _order(row: Row) -> Row:
    return row[:3]


def _entries_between(by: str) -> str:
    """Ids of older entries that revisions in a range of numbers opened or closed."""
    return f"""
        SELECT x.id FROM {manifest.table(Revision)} r
        JOIN {manifest.table(Edit)} d ON d.revision_id = r.id
        JOIN {manifest.table(Entry)} x ON x.{by} = d.id
        WHERE r.run_id = %s AND r.number > %s AND r.number <= %s AND x.position < %s
    """  # noqa: S608 - table and column names of our own


def _places(run: Run, extent: Extent) -> Place:
    """Map an entry's position, first step and opening edit to its index in context order."""
    others = sorted(_OPENED.rows(run=run.pk, head=extent.head, blocks=extent.blocks))

    def place(row: Row) -> int:
        position, _, opened_by = row[:3]
        if not opened_by:
            return int(position) + bisect_left(others, (position,))
        return int(position) + 1 + bisect_left(others, row[:3])

    return place


_OPENED = Statement(
    lambda: Entry.objects.filter(
        run_id=given_uuid("run"),
        opened_by__revision__number__lte=given_int("head"),
        position__lt=given_int("blocks"),
    ).values_list("position", "from_step", "opened_by_id")
)


def _delta(run: Run, new: Extent, known: int, fresh: list[Row], closed: list[Row]) -> Delta:
    if all(not row[-2] for row in fresh) and not closed:
        at, closed_at = list(range(known, known + len(fresh))), []
    else:
        place = _places(run, new)
        at, closed_at = list(map(place, fresh)), list(map(place, closed))
    columns = manifest.by_column(fresh)
    entries: Columns = {"at": at} | {name: columns[name] for name in _SENT}
    ends = manifest.by_column(closed)
    return Delta(entries, {"at": closed_at, "to": ends["to"], "closed": ends["closed"]})


def merged(columns: Mapping[str, Sequence[int]], change: Delta) -> dict[str, list[int]]:
    """Apply a delta to columns; the browser has its own implementation."""
    places = change.entries["at"]
    found: dict[str, list[int]] = {}
    for name in _SENT:
        values = iter(change.entries[name])
        column: list[int] = []
        taken = 0
        for place in places:
            new = place - len(column)
            column += columns[name][taken : taken + new]
            column.append(next(values))
            taken += new
        found[name] = column + list(columns[name][taken:])
    for name in ("to", "closed"):
        for place, value in zip(change.changed["at"], change.changed[name], strict=True):
            found[name][place] = value
    return found


# Columns stored with a run

STALE = 400
"""New entries after which stored columns are refreshed."""

FORM = 2
"""Of the stored columns; those of another form are read from rows."""


class Entries(NamedTuple):
    """A run's entries for pages: packed columns as JSON, and the rows that are new or were closed
    since these were stored. `total` counts the entries of both."""

    json: bytes
    total: int
    later: tuple[list[Row], list[Row]] | None = None


def entries(session: Session, run: Run) -> Entries:
    """The stored columns with their later changes, or all as read from rows."""
    extent = manifest.extent_of(session, run)
    if (found := _stored(run, extent)) is not None:
        return found
    columns = manifest.columns(run, extent)
    return Entries(msgspec.json.encode(packed(columns)), len(columns["from"]))


def _stored(run: Run, extent: Extent) -> Entries | None:
    """The stored columns with their later changes; None if they are of another form or newer."""
    # Read key and columns in one query, because another process may store newer ones meanwhile.
    row = _KEPT.first(run=run.pk)
    if row is None:
        return None  # the session is written again meanwhile, with another run
    key, kept_json = row
    kept = _kept(key)
    if kept is None or kept[0].head > extent.head or kept[0].blocks > extent.blocks:
        return None
    old, count = kept
    stored = manifest.unpack(kept_json)
    if old == extent:
        return Entries(stored, count)
    later = news(run, old, extent)
    return Entries(stored, count + len(later[0]), later)


_KEPT = Statement(
    lambda: Run.objects.filter(pk=given_uuid("run")).values_list("entries_key", "entries_packed")
)


def later_of(found: Entries) -> dict[str, Columns] | None:
    """What is new since the columns were stored, by position: entries, which follow all others
    there, and the ends of older ones, which are the last but for these."""
    if found.later is None:
        return None
    fresh, closed = map(manifest.by_column, found.later)
    return {
        "entries": {name: fresh[name] for name in ("position", *_SENT)},
        "changed": {name: closed[name] for name in ("position", "edit", "to", "closed")},
    }


def columns_of(session: Session, run: Run) -> Mapping[str, Sequence[int]]:
    """The columns of all entries."""
    extent = manifest.extent_of(session, run)
    if (found := _stored(run, extent)) is None:
        read = manifest.columns(run, extent)
        return {name: read[name] for name in _SENT}
    columns = unpacked(msgspec.json.decode(found.json))
    if found.later is None:
        return columns
    return merged(columns, _delta(run, extent, len(columns["from"]), *found.later))


def placed_columns(session: Session, run: Run) -> dict[str, Sequence[int]]:
    """The columns of all entries, with positions: each begins at the entry that no revision
    opened."""
    columns = columns_of(session, run)
    originals = accumulate((not edit for edit in columns["edit"]), initial=-1)
    return {**columns, "position": list(originals)[1:]}


def is_stale(session: Session, run: Run) -> bool:
    """Whether a run's stored columns should be refreshed."""
    kept = _kept(run.entries_key)
    new = manifest.extent_of(session, run)
    return kept is None or new.blocks - kept[0].blocks > STALE or new.head - kept[0].head > STALE


def keep_entries(session: Session, run: Run) -> None:
    """Store the columns on the run, for the rows known here; the caller saves the run."""
    extent, columns = manifest.extent_of(session, run), columns_of(session, run)
    run.entries_packed = manifest.pack(msgspec.json.encode(packed(columns)))
    run.entries_key = f"{FORM}-{extent.blocks}-{extent.head}-{len(columns['from'])}"


def _kept(key: str) -> tuple[Extent, int] | None:
    """Parse the key of stored columns into their extent and entry count."""
    try:
        form, blocks, head, count = map(int, key.split("-"))
    except ValueError:
        return None
    return (Extent(blocks, head), count) if form == FORM else None
