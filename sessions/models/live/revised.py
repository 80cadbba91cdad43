"""Load stored revisions as engine values, so that the fold can continue from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from django.db.models import Q

from compaction.context import edits, wire
from compaction.context.blocks import Block
from compaction.context.stubs import digest
from sessions.models.record.revisions import Edit, Entry, Replacement, Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.record.values import CHUNK, block_id, contents


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
    rows = Edit.objects.filter(
        revision__run=run, revision__number__gt=after, revision__number__lte=run.head
    )
    if until is not None:
        rows = rows.filter(revision__step__lte=until)
    listed = list(
        rows.select_related("revision", "replacement").order_by("revision__number", "index")
    )
    changes = _changes(run, [row.pk for row in listed])
    shas = [row.replacement.sha for row in changes if row.replacement is not None]
    reader = _EditReader(session, originals, dict(held), contents(session, shas))
    closed: dict[int | None, list[Entry]] = defaultdict(list)
    opened: dict[int | None, list[Entry]] = defaultdict(list)
    for entry in changes:
        closed[entry.closed_by_id].append(entry)
        opened[entry.opened_by_id].append(entry)
    found: dict[int, tuple[Revision, list[edits.Edit]]] = {}
    for row in listed:
        edit = reader.edit(row, closed[row.pk], opened[row.pk])
        found.setdefault(row.revision.number, (row.revision, []))[1].append(edit)
    return [_revision(row, tuple(made)) for row, made in found.values()]


def _changes(run: Run, listed: list[int]) -> list[Entry]:
    """Entries that these edits closed or opened, in order of position."""
    found: dict[int, Entry] = {}
    for start in range(0, len(listed), CHUNK):
        chunk = listed[start : start + CHUNK]
        rows = Entry.objects.filter(Q(closed_by__in=chunk) | Q(opened_by__in=chunk), run=run)
        found.update((row.pk, row) for row in rows.select_related("block__message", "replacement"))
    return sorted(found.values(), key=lambda row: (row.position, row.pk))


def _revision(row: Revision, found: tuple[edits.Edit, ...]) -> edits.Revision:
    return edits.Revision(
        number=row.number,
        step=row.step,
        trigger=row.trigger,  # type: ignore[arg-type]
        edits=found,
        tokens_before=row.tokens_before or 0,
        tokens_after=row.tokens_after or 0,
        reason=row.reason,
    )


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

    def edit(self, row: Edit, closed: list[Entry], opened: list[Entry]) -> edits.Edit:
        targets = tuple(_name(entry) for entry in closed)
        replacement: Block | None = None
        restores: tuple[Block, ...] = ()
        if row.replacement is not None:
            replacement = self._made(row.replacement, targets[0], row.revision.step)
        else:
            restores = tuple(self._restored(entry, targets) for entry in opened)
        return edits.Edit(row.strategy, targets, replacement, row.reason, restores)

    def _made(self, row: Replacement, replaces: str, step: int) -> Block:
        """The replacement block as made by `stubs.stand_in` or `spans.summary_edit`."""
        original = self.originals[row.position]
        text = wire.text_of(wire.decode(self.data[row.sha]))
        made = replace(
            original,
            id=row.name,
            role=row.role,  # type: ignore[arg-type]
            type=row.type,  # type: ignore[arg-type]
            kind=row.kind,  # type: ignore[arg-type]
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

    def _restored(self, entry: Entry, targets: tuple[str, ...]) -> Block:
        if entry.replacement is None:
            return self.originals[entry.position]
        name = entry.replacement.name
        if name not in self.held:
            # A summary that was moved: its source is the target whose id is a prefix of its own.
            source = self.held[next(one for one in targets if name.startswith(f"{one}>"))]
            original = self.originals[entry.position]
            self.held[name] = replace(
                source,
                id=name,
                position=entry.position,
                message=original.message,
                turn=original.turn,
            )
        return self.held[name]


def _name(entry: Entry) -> str:
    if entry.block is not None:
        return block_id(entry.block.message.seq, entry.block.index)
    assert entry.replacement is not None
    return entry.replacement.name
