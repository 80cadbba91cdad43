"""What came to a run's entries since somebody looked, and the columns that are kept with a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sessions.models import manifest
from sessions.models.manifest import Columns, Extent, Row
from sessions.models.revisions import Edit, Entry, Revision, Run
from sessions.models.sessions import Session

_SENT = ("from", "to", "kind", "tokens", "message", "index", "flags", "edit", "closed")

Place = Callable[[Row], int]


class Delta(NamedTuple):
    """`entries` are columns of new entries, `at` the index at which each stands in context order
    afterwards, ascending; `changed` are `at`, `to` and `closed` of older ones, by the new order."""

    entries: Columns
    changed: Columns


def delta(run: Run, old: Extent, new: Extent, known: int) -> Delta:
    """What somebody who knows the `known` entries of one extent lacks of a later one.

    Reads what is new; where there are newer revisions also the places of all entries that
    revisions opened, as these tell where others stand.
    """
    fresh, closed = news(run, old, new)
    if new.head == old.head:
        return _delta(fresh, range(known, known + len(fresh)), [], [])
    place = _places(run, new)
    return _delta(fresh, list(map(place, fresh)), closed, list(map(place, closed)))


def news(run: Run, old: Extent, new: Extent) -> tuple[list[Row], list[Row]]:
    """Entries of one extent that an older one lacks, and those of the older one that have been
    closed since: rows of `manifest.COLUMNS` in context order."""
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
    """Ids of older entries that revisions between two numbers opened or closed."""
    return f"""
        SELECT x.id FROM {manifest.table(Revision)} r
        JOIN {manifest.table(Edit)} d ON d.revision_id = r.id
        JOIN {manifest.table(Entry)} x ON x.{by} = d.id
        WHERE r.run_id = %s AND r.number > %s AND r.number <= %s AND x.position < %s
    """  # noqa: S608 - table and column names of our own


def _places(run: Run, extent: Extent) -> Place:
    """The index of an entry in context order, from its position, first step and opening edit."""
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
    """Columns with a delta in them: what the browser does, too."""
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


# What is kept with a run

STALE = 400
"""Entries that may be missing in kept columns before those are written anew."""


class Entries(NamedTuple):
    """A run's columns as JSON, and how many entries they hold."""

    json: bytes
    total: int


def entries(session: Session, run: Run) -> Entries:
    """Columns for the browser: those kept, with what came since; or read afresh."""
    extent = manifest.extent_of(session, run)
    # Read at once, as others may keep newer ones meanwhile.
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
    """Whether it is time to keep a run's columns again."""
    kept = _kept(run.entries_key)
    new = manifest.extent_of(session, run)
    return kept is None or new.blocks - kept[0].blocks > STALE or new.head - kept[0].head > STALE


def keep_entries(session: Session, run: Run) -> None:
    """Keep the columns of a run for as many rows as are known here; the caller saves the run."""
    kept = entries(session, run)
    extent = manifest.extent_of(session, run)
    run.entries_packed = manifest.pack(kept.json)
    run.entries_key = f"{extent.blocks}-{extent.head}-{kept.total}"


def _kept(key: str) -> tuple[Extent, int] | None:
    """For which rows the kept columns hold, and how many entries they are."""
    try:
        blocks, head, count = map(int, key.split("-"))
    except ValueError:
        return None
    return Extent(blocks, head), count


def _sent(columns: Columns) -> Columns:
    return {name: columns[name] for name in _SENT}


def _encoded(columns: Columns | dict[str, list[int]]) -> Entries:
    return Entries(msgspec.json.encode(columns), len(columns["from"]))
