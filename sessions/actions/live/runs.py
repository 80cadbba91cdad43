"""Storage of policy runs as rows, simulated or managed, for replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction import tokens
from compaction.context import edits as values
from compaction.context import wire
from compaction.context.blocks import Block as BlockValue
from sessions.actions.record.recorded import BATCH
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
from sessions.models.record.blobs import keep, sha256
from sessions.models.web.statements import (
    Statement,
    StatementAmong,
    Update,
    given_columns,
    given_int,
    given_uuid,
    insert,
    stored_uuid,
)

REPLACEMENT_COLUMNS = (
    *("run_id", "position", "name", "refs", "role", "type", "kind", "tool", "tool_call"),
    *("tokens", "chars", "sha", "preview"),
)
EDIT_COLUMNS = ("revision_id", "index", "strategy", "reason", "replacement_id")
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


@dataclass(slots=True)
class _Lifespan:
    """An entry's row: keys of other rows, `pk` only if it is stored."""

    position: int
    block: int | None
    replacement: int | None
    from_step: int
    opened_by: int | None = None
    to_step: int | None = None
    closed_by: int | None = None
    pk: int | None = None


class RunWriter:
    """Writes a fold's changes as rows: all of a simulated run, or the new ones of a managed run.

    Originals that the policy never changed get no row: they are in context from their birth. Use
    inside a transaction that holds the run's row. A first context may change thousands of blocks,
    so rows are not made as objects.
    """

    def __init__(
        self, run: Run, session: Session, version: PolicyVersion, unscaled: Mapping[str, int]
    ) -> None:
        self.run, self.session, self.version, self.unscaled = run, session, version, unscaled
        self._blocks: dict[int, tuple[int, int]] = {}
        self._open: dict[int, _Lifespan] = {}
        self._new: list[_Lifespan] = []
        self._closed: list[_Lifespan] = []
        self._replacements: dict[str, int] = {}

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
        names = [name.removesuffix("_id") for name in ENTRY_COLUMNS[1:]]
        rows = [(run, *(getattr(entry, name) for name in names)) for entry in self._new]
        insert(Entry, ENTRY_COLUMNS, rows)
        for entry in self._closed:
            _CLOSE.run(entry=entry.pk, to_step=entry.to_step, closed_by_id=entry.closed_by)

    def _look_up(self, news: UnsavedRows, fresh: bool) -> None:
        """Load the rows of changed positions: blocks, and open entries."""
        named = [*_named(news.revisions)]
        places = sorted({news.places[name] for name in named} | {*news.late, *news.left_out})
        stored = _BLOCKS_AT.rows(places, session=self.session.pk)
        self._blocks.update((place, (pk, born)) for place, pk, born in stored)
        if not fresh:
            for place, pk, step in _STANDING_AT.rows(places, run=self.run.pk):
                self._open[place] = _Lifespan(place, None, None, step, pk=pk)

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
        before = self._stored(block for name, block in made.items() if name not in new)
        fresh = [block for name, block in made.items() if name not in before]
        data = {block.id: wire.encode(wire.block_of(block)) for block in fresh}
        self._store_blobs({sha256(one): one for one in data.values()})
        insert(Replacement, REPLACEMENT_COLUMNS, [self._row(b, data[b.id]) for b in fresh])
        self._replacements = before | self._stored(fresh)

    def _stored(self, blocks: Iterable[BlockValue]) -> dict[str, int]:
        """Keys of the newest rows of replacements, by name."""
        places = {block.id: block.position for block in blocks}
        rows = _REPLACEMENTS_AT.rows(list(places.values()), run=self.run.pk)
        return {name: pk for pk, name in sorted(rows) if name in places}

    def _store_blobs(self, by_sha: dict[str, bytes]) -> None:
        team = self.session.team_id
        keep(team, [Blob.of(team, one, sha) for sha, one in by_sha.items()])

    def _row(self, block: BlockValue, data: bytes) -> tuple[Any, ...]:
        counted = self.unscaled.get(block.text)
        return (
            stored_uuid(self.run.pk),
            block.position,
            block.id,
            json.dumps(block.refs),
            block.role,
            block.type,
            block.kind,
            block.tool or "",
            block.tool_call or "",
            tokens.count(block.text) if counted is None else counted,
            block.chars,
            sha256(data),
            wire.preview(wire.block_of(block), block.tool or ""),
        )

    def _write_edits(self, news: UnsavedRows) -> None:
        revisions = [self._revision(revision, news) for revision in news.revisions]
        Revision.objects.bulk_create(revisions, batch_size=BATCH // 2)
        pairs = [
            (row, index, edit)
            for row, revision in zip(revisions, news.revisions, strict=True)
            for index, edit in enumerate(revision.edits)
        ]
        insert(Edit, EDIT_COLUMNS, [self._edit(row.pk, index, edit) for row, index, edit in pairs])
        stored = _EDITS_FROM.rows(run=self.run.pk, number=revisions[0].number)
        keys = {(revision, index): pk for revision, index, pk in stored}
        for row, index, edit in pairs:
            self._change(edit, row.step, keys[row.pk, index], news.places)

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

    def _edit(self, revision: int, index: int, edit: values.Edit) -> tuple[Any, ...]:
        made = self._replacements[edit.replacement.id] if edit.replacement else None
        return revision, index, edit.strategy, edit.reason[:400], made

    def _change(self, edit: values.Edit, step: int, key: int, places: Mapping[str, int]) -> None:
        """Close the entries of an edit's targets, and open the new ones."""
        for place in (places[target] for target in edit.targets):
            entry = self._open.pop(place, None)
            if entry is None:
                block, born = self._blocks[place]
                entry = _Lifespan(place, block, None, born)
                self._new.append(entry)
            entry.to_step, entry.closed_by = step, key
            if entry.pk is not None:
                self._closed.append(entry)
        for opened in edit.restores if edit.replacement is None else (edit.replacement,):
            place = opened.position
            if opened.replaces is None:
                self._begin(place, step, block=self._blocks[place][0], by=key)
            else:
                self._begin(place, step, replacement=self._replacements[opened.id], by=key)

    def _begin(
        self,
        place: int,
        step: int,
        *,
        block: int | None = None,
        replacement: int | None = None,
        by: int | None = None,
    ) -> None:
        entry = _Lifespan(place, block, replacement, step, by)
        self._new.append(entry)
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
    ).values_list("position", "pk", "from_step"),
    given_int,
)
_REPLACEMENTS_AT = StatementAmong(
    lambda places: Replacement.objects.filter(
        run_id=given_uuid("run"), position__in=places
    ).values_list("pk", "name"),
    given_int,
)
_EDITS_FROM = Statement(
    lambda: Edit.objects.filter(
        revision__run_id=given_uuid("run"), revision__number__gte=given_int("number")
    ).values_list("revision_id", "index", "pk")
)
_CLOSE = Update(
    lambda: (
        Entry.objects.filter(pk=given_int("entry")),
        given_columns(Entry, ("to_step", "closed_by_id")),
    )
)


def _named(revisions: Iterable[values.Revision]) -> Iterator[str]:
    for revision in revisions:
        for edit in revision.edits:
            yield from edit.targets
            yield from (block.id for block in edit.restores)
