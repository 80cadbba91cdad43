"""New and changed entries of a run since a known state, and the columns stored with a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sessions.models.record import manifest
from sessions.models.record.manifest import Columns, Extent, Row
from sessions.models.record.revisions import Edit, Entry, Revision, Run
from sessions.models.record.sessions import Session

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
    fresh, closed = news(run, old, new)
    if new.head == old.head:
        return _delta(fresh, range(known, known + len(fresh)), [], [])
    place = _places(run, new)
    return _delta(fresh, list(map(place, fresh)), closed, list(map(place, closed)))


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
    found = run.entries.filter(
        opened_by__revision__number__lte=extent.head, position__lt=extent.blocks
    )
    others = sorted(found.values_list("position", "from_step", "opened_by_id"))

    def place(row: Row) -> int:
        position, _, opened_by = row[:3]
        if not opened_by:
            return int(position) + bisect_left(others, (position,))
        return int(position) + 1 + bisect_left(others, row[:3])

    return place


def _delta(
    fresh: list[Row], at: Sequence[int], changed: list[Row], changed_at: Sequence[int]
) -> Delta:
    columns = manifest.by_column(fresh)
    entries: Columns = {"at": list(at)} | {name: columns[name] for name in _SENT}
    closed = manifest.by_column(changed)
    return Delta(entries, {"at": list(changed_at), "to": closed["to"], "closed": closed["closed"]})


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


class Entries(NamedTuple):
    """A run's columns as JSON, and the number of entries."""

    json: bytes
    total: int


def entries(session: Session, run: Run) -> Entries:
    """Columns for the browser: the stored ones plus later changes, or read from rows."""
    extent = manifest.extent_of(session, run)
    # Read key and columns in one query, because another process may store newer ones meanwhile.
    key, packed = Run.objects.values_list("entries_key", "entries_packed").get(pk=run.pk)
    kept = _kept(key)
    if kept is None or kept[0].head > extent.head or kept[0].blocks > extent.blocks:
        return _encoded(_sent(manifest.columns(run, extent)))
    old, count = kept
    stored = manifest.unpack(packed)
    if old == extent:
        return Entries(stored, count)
    columns = msgspec.json.decode(stored, type=dict[str, list[int]])
    return _encoded(merged(columns, delta(run, old, extent, count)))


def is_stale(session: Session, run: Run) -> bool:
    """Whether a run's stored columns should be refreshed."""
    kept = _kept(run.entries_key)
    new = manifest.extent_of(session, run)
    return kept is None or new.blocks - kept[0].blocks > STALE or new.head - kept[0].head > STALE


def keep_entries(session: Session, run: Run) -> None:
    """Store the columns on the run, for the rows known here; the caller saves the run."""
    kept = entries(session, run)
    extent = manifest.extent_of(session, run)
    run.entries_packed = manifest.pack(kept.json)
    run.entries_key = f"{extent.blocks}-{extent.head}-{kept.total}"


def _kept(key: str) -> tuple[Extent, int] | None:
    """Parse the key of stored columns into their extent and entry count."""
    try:
        blocks, head, count = map(int, key.split("-"))
    except ValueError:
        return None
    return Extent(blocks, head), count


def _sent(columns: Columns) -> Columns:
    return {name: columns[name] for name in _SENT}


def _encoded(columns: Columns | dict[str, list[int]]) -> Entries:
    return Entries(msgspec.json.encode(columns), len(columns["from"]))
