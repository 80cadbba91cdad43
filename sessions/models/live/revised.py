"""Load stored revisions as engine values, so that the fold can continue from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db.models import Q

from compaction.context import edits, wire
from compaction.context.blocks import Block, BlockType, Kind, Role
from compaction.context.stubs import digest
from sessions.models.record.revisions import Edit, Entry, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.record.values import CHUNK, contents


class _MadeBlock(NamedTuple):
    """A replacement's row."""

    pk: int
    name: str
    position: int
    role: Role
    type: BlockType
    kind: Kind
    tokens: int
    chars: int
    sha: str
    refs: list[str]


class _ListedEdit(NamedTuple):
    """An edit's row, with its revision's step, and its replacement's row if it has one."""

    pk: int
    number: int
    step: int
    strategy: str
    reason: str
    made: _MadeBlock


class _ChangedEntry(NamedTuple):
    """An entry's row; `name` is that of its replacement, None for an original."""

    pk: int
    position: int
    closed_by: int | None
    opened_by: int | None
    name: str | None


# Plain columns: a long run has tens of thousands of rows, and objects cost ten times as much.
_LISTED = ("pk", "revision__number", "revision__step", "strategy", "reason")
_MADE = tuple(f"replacement__{name}" for name in _MadeBlock._fields)
_CHANGED = ("pk", "position", "closed_by", "opened_by", "replacement__name")


def revisions_of(
    session: Session,
    run: Run,
    originals: Mapping[int, Block],
    held: Mapping[str, Block],
    *,
    after: int = 0,
    until: int | None = None,
) -> list[edits.Revision]:
    """Load the revisions of a run with numbers in (after, run.head], as the fold made them.

    With `until`, only those up to that step. `originals` are the blocks folded so far, by position;
    `held` the replacements made by revisions up to `after`, by id.
    """
    revisions = Revision.objects.filter(run=run, number__gt=after, number__lte=run.head)
    if until is not None:
        revisions = revisions.filter(step__lte=until)
    columns = "number", "step", "trigger", "tokens_before", "tokens_after", "reason"
    rows = Edit.objects.filter(revision__in=revisions).order_by("revision__number", "index")
    listed = [
        _ListedEdit._make((*row[: len(_LISTED)], _MadeBlock._make(row[len(_LISTED) :])))
        for row in rows.values_list(*_LISTED, *_MADE)
    ]
    changes = _changes(run, [row.pk for row in listed])
    data = contents(session, [row.made.sha for row in listed if row.made.sha])
    reader = _EditReader(session, originals, dict(held), data)
    closed: dict[int | None, list[_ChangedEntry]] = defaultdict(list)
    opened: dict[int | None, list[_ChangedEntry]] = defaultdict(list)
    for entry in changes:
        closed[entry.closed_by].append(entry)
        opened[entry.opened_by].append(entry)
    found: dict[int, list[edits.Edit]] = defaultdict(list)
    for row in listed:
        found[row.number].append(reader.edit(row, closed[row.pk], opened[row.pk]))
    return [
        edits.Revision(
            number, step, trigger, tuple(found[number]), before or 0, after_ or 0, reason
        )
        for number, step, trigger, before, after_, reason in revisions.order_by(
            "number"
        ).values_list(*columns)
        if number in found
    ]


def _changes(run: Run, listed: list[int]) -> list[_ChangedEntry]:
    """Entries that these edits closed or opened, in order of position."""
    found: dict[int, _ChangedEntry] = {}
    for start in range(0, len(listed), CHUNK):
        chunk = listed[start : start + CHUNK]
        rows = Entry.objects.filter(Q(closed_by__in=chunk) | Q(opened_by__in=chunk), run=run)
        found.update((row[0], _ChangedEntry._make(row)) for row in rows.values_list(*_CHANGED))
    return sorted(found.values(), key=lambda row: (row.position, row.pk))


class _EditReader:
    """Reads edits in order; later edits may refer to replacements of earlier ones."""

    def __init__(
        self,
        session: Session,
        originals: Mapping[int, Block],
        held: dict[str, Block],
        data: dict[str, bytes],
    ) -> None:
        self.session, self.originals, self.held, self.data = session, originals, held, data

    def edit(
        self, row: _ListedEdit, closed: Sequence[_ChangedEntry], opened: Sequence[_ChangedEntry]
    ) -> edits.Edit:
        targets = tuple(entry.name or self.originals[entry.position].id for entry in closed)
        replacement: Block | None = None
        restores: tuple[Block, ...] = ()
        if row.made.sha:
            replacement = self._made(row.made, targets[0], row.step)
        else:
            restores = tuple(self._restored(entry, targets) for entry in opened)
        return edits.Edit(row.strategy, targets, replacement, row.reason, restores)

    def _made(self, row: _MadeBlock, replaces: str, step: int) -> Block:
        """The replacement block as made by `stubs.stand_in` or `spans.summary_edit`."""
        text = wire.text_of(wire.decode(self.data[row.sha]))
        made = replace(
            self.originals[row.position],
            id=row.name,
            role=row.role,
            type=row.type,
            kind=row.kind,
            tokens=self.session.scaled(row.tokens),
            chars=row.chars,
            sha=digest(text),
            text=text,
            pinned=False,
            replaces=replaces,
            refs=tuple(row.refs),
        )
        if row.kind == "summary":
            made = replace(
                made, born=step, call=None, tool_call=None, tool=None, file=None, error=False
            )
        self.held[row.name] = made
        return made

    def _restored(self, entry: _ChangedEntry, targets: tuple[str, ...]) -> Block:
        if entry.name is None:
            return self.originals[entry.position]
        if entry.name not in self.held:
            # A summary that was moved: its source is the target whose id is a prefix of its own.
            source = self.held[next(one for one in targets if entry.name.startswith(f"{one}>"))]
            original = self.originals[entry.position]
            self.held[entry.name] = replace(
                source,
                id=entry.name,
                position=entry.position,
                message=original.message,
                turn=original.turn,
            )
        return self.held[entry.name]
