"""Storage of policy runs as rows, simulated or managed, for replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction import tokens
from compaction.context import edits as values
from compaction.context import wire
from compaction.context.blocks import Block as BlockValue
from sessions.actions.record.recorded import BATCH
from sessions.actions.record.writing import BLOB_COLUMNS
from sessions.models import (
    Blob,
    Block,
    Edit,
    Entry,
    PolicyVersion,
    Replacement,
    Revision,
    Run,
    Session,
)
from sessions.models.record.blobs import sha256
from sessions.models.web.statements import (
    StatementAmong,
    given_int,
    given_uuid,
    insert,
    stored_uuid,
)

ENTRY_COLUMNS = (
    *("run_id", "position", "block_id", "replacement_id", "from_step", "to_step"),
    *("opened_by_id", "closed_by_id"),
)


@dataclass(frozen=True, slots=True)
class Times:
    """Measured times: counting tokens (`estimate_us`), everything else in the fold's step
    (`shaping_us`), and making the summary (None without one)."""

    estimate_us: int
    shaping_us: int
    summary_ms: int | None = None


@dataclass(frozen=True, slots=True)
class UnsavedRows:
    """Changes of a fold that are not stored yet.

    `places` gives the position of each block named by the revisions. `late` maps originals that
    arrived after their birth to their step; `left_out` are excluded originals. `at` (ms since the
    epoch) is when a live run made the revisions, `times` the time each took, by number.
    """

    revisions: Sequence[values.Revision]
    places: Mapping[str, int]
    late: Mapping[int, int] = field(default_factory=dict)
    left_out: Sequence[int] = ()
    at: int | None = None
    times: Mapping[int, Times] = field(default_factory=dict)


class RunWriter:
    """Writes a fold's changes as rows: all of a simulated run, or the new ones of a managed run.

    Originals that the policy never changed get no row: they are in context from their birth. Use
    inside a transaction that holds the run's row.
    """

    def __init__(
        self, run: Run, session: Session, version: PolicyVersion, unscaled: Mapping[str, int]
    ) -> None:
        self.run, self.session, self.version, self.unscaled = run, session, version, unscaled
        self._blocks: dict[int, tuple[int, int]] = {}
        self._open: dict[int, Entry] = {}
        self._rows: list[Entry] = []
        self._closed: list[Entry] = []
        self._replacements: dict[str, Replacement] = {}

    def write(self, news: UnsavedRows, *, fresh: bool) -> None:
        """Insert rows, parents before children; `fresh` if the run has none yet."""
        self._look_up(news, fresh)
        for place, step in news.late.items():
            self._begin(place, step, block=self._blocks[place][0])
        for place in news.left_out:
            # Never in this run's context: an empty interval.
            block, born = self._blocks[place]
            self._begin(place, max(born, 1), block=block)
            self._open.pop(place).to_step = max(born, 1)
        if news.revisions:
            self._write_replacements(news.revisions)
            self._write_edits(news)
        run = stored_uuid(self.run.pk)
        rows = [[getattr(entry, name) for name in ENTRY_COLUMNS[1:]] for entry in self._rows]
        insert(Entry, ENTRY_COLUMNS, [(run, *row) for row in rows])
        Entry.objects.bulk_update(self._closed, ["to_step", "closed_by"], batch_size=BATCH // 2)

    def _look_up(self, news: UnsavedRows, fresh: bool) -> None:
        """Load the rows of changed positions: blocks, and open entries."""
        named = [*_named(news.revisions)]
        places = sorted({news.places[name] for name in named} | {*news.late, *news.left_out})
        stored = _BLOCKS_AT.rows(places, session=self.session.pk)
        self._blocks.update((place, (pk, born)) for place, pk, born in stored)
        if not fresh:
            standing = _STANDING_AT.rows(places, run=self.run.pk)
            self._open.update((entry.position, entry) for entry in standing)

    def _write_replacements(self, revisions: Sequence[values.Revision]) -> None:
        made = {
            block.id: block
            for revision in revisions
            for edit in revision.edits
            for block in (edit.replacement, *edit.restores)
            if block is not None and block.replaces is not None
        }
        new = {
            edit.replacement.id
            for revision in revisions
            for edit in revision.edits
            if edit.replacement is not None
        }
        old = [name for name in made if name not in new]
        if old:
            stored = self.run.replacements.filter(name__in=old).order_by("pk")
            self._replacements = {row.name: row for row in stored}
        fresh = [block for name, block in made.items() if name not in self._replacements]
        data = {block.id: wire.encode(wire.block_of(block)) for block in fresh}
        self._store_blobs({sha256(one): one for one in data.values()})
        rows = {block.id: self._replacement(block, data[block.id]) for block in fresh}
        Replacement.objects.bulk_create(rows.values(), batch_size=BATCH // 2)
        self._replacements |= rows

    def _store_blobs(self, by_sha: dict[str, bytes]) -> None:
        team = self.session.team_id
        blobs = [Blob.of(team, one, sha) for sha, one in by_sha.items()]
        rows = [(stored_uuid(team), b.sha, b.size, b.packed, b.data) for b in blobs]
        insert(Blob, BLOB_COLUMNS, rows, known=True)

    def _replacement(self, block: BlockValue, data: bytes) -> Replacement:
        counted = self.unscaled.get(block.text)
        return Replacement(
            run=self.run,
            position=block.position,
            name=block.id,
            refs=list(block.refs),
            role=block.role,
            type=block.type,
            kind=block.kind,
            tool=block.tool or "",
            tool_call=block.tool_call or "",
            tokens=tokens.count(block.text) if counted is None else counted,
            chars=block.chars,
            sha=sha256(data),
            preview=wire.preview(wire.block_of(block), block.tool or ""),
        )

    def _write_edits(self, news: UnsavedRows) -> None:
        revisions = [self._revision(revision, news) for revision in news.revisions]
        Revision.objects.bulk_create(revisions, batch_size=BATCH // 2)
        pairs = [
            (edit, self._edit(row, index, edit))
            for row, revision in zip(revisions, news.revisions, strict=True)
            for index, edit in enumerate(revision.edits)
        ]
        Edit.objects.bulk_create([row for _, row in pairs], batch_size=BATCH)
        for edit, row in pairs:
            self._change(edit, row, news.places)

    def _revision(self, revision: values.Revision, news: UnsavedRows) -> Revision:
        took = news.times.get(revision.number)
        return Revision(
            run=self.run,
            number=revision.number,
            step=revision.step,
            trigger=revision.trigger,
            reason=revision.reason[:400],
            policy_version=self.version,
            parameters=self._parameters(),
            # The model also saw the hidden tokens; strategies did not.
            tokens_before=revision.tokens_before + self.session.hidden_tokens,
            tokens_after=revision.tokens_after + self.session.hidden_tokens,
            at=news.at,
            estimate_us=None if took is None else took.estimate_us,
            shaping_us=None if took is None else took.shaping_us,
            summary_ms=None if took is None else took.summary_ms,
        )

    def _parameters(self) -> dict[str, Any]:
        """The run's policy document; for a managed run with the session's overrides."""
        managed = self.run.origin == Run.Origin.MANAGED
        own = self.session.policy_document if managed else None
        return own or self.version.document

    def _edit(self, row: Revision, index: int, edit: values.Edit) -> Edit:
        replacement = self._replacements[edit.replacement.id] if edit.replacement else None
        return Edit(
            revision=row,
            index=index,
            strategy=edit.strategy,
            reason=edit.reason[:400],
            replacement=replacement,
        )

    def _change(self, edit: values.Edit, row: Edit, places: Mapping[str, int]) -> None:
        """Close the entries of an edit's targets, and open the new ones."""
        step = row.revision.step
        for place in (places[target] for target in edit.targets):
            entry = self._open.pop(place, None)
            if entry is None:
                block, born = self._blocks[place]
                entry = Entry(run=self.run, position=place, block_id=block, from_step=born)
                self._rows.append(entry)
            entry.to_step, entry.closed_by = step, row
            if entry.pk is not None:
                self._closed.append(entry)
        for opened in edit.restores if edit.replacement is None else (edit.replacement,):
            place = opened.position
            if opened.replaces is None:
                self._begin(place, step, block=self._blocks[place][0], by=row)
            else:
                self._begin(place, step, replacement=self._replacements[opened.id], by=row)

    def _begin(
        self,
        place: int,
        step: int,
        *,
        block: int | None = None,
        replacement: Replacement | None = None,
        by: Edit | None = None,
    ) -> None:
        entry = Entry(
            run=self.run,
            position=place,
            block_id=block,
            replacement=replacement,
            from_step=step,
            opened_by=by,
        )
        self._rows.append(entry)
        self._open[place] = entry


_BLOCKS_AT = StatementAmong(
    lambda places: Block.objects.filter(
        session_id=given_uuid("session"), position__in=places
    ).values_list("position", "pk", "born"),
    given_int,
)
_STANDING_AT = StatementAmong(
    lambda places: Entry.objects.filter(
        run_id=given_uuid("run"), position__in=places, to_step=None
    ),
    given_int,
)


def _named(revisions: Iterable[values.Revision]) -> Iterator[str]:
    for revision in revisions:
        for edit in revision.edits:
            yield from edit.targets
            yield from (block.id for block in edit.restores)
