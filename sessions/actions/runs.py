"""Simulated runs: a policy over a recorded session, stored so that pages can replay it."""

from __future__ import annotations

from django.db import transaction

from compaction import edits as values
from compaction import wire
from compaction.context import Block as BlockValue
from compaction.simulate import Run as RunValue
from sessions.actions.recorded import BATCH
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
from sessions.models.blobs import sha256
from sessions.models.values import block_id, summary_messages


def store_run(
    session: Session, version: PolicyVersion, simulated: RunValue, unscaled: dict[str, int]
) -> Run:
    """Write a simulated run in place of an older one of the same policy version.

    `unscaled` gives the o200k tokens of every replacement's text. Originals that the policy never
    touched get no row: they stand from their birth on.
    """
    with transaction.atomic():
        Run.objects.filter(
            session=session, policy_version=version, origin=Run.Origin.SIMULATED
        ).delete()
        run = Run.objects.create(
            session=session,
            origin=Run.Origin.SIMULATED,
            policy_version=version,
            summarizer="extractive",
            token_ratio=session.token_ratio,
            steps=session.step_count,
            head=len(simulated.revisions),
        )
        _Writer(run, session, version, unscaled).write(simulated)
    return run


class _Writer:
    def __init__(
        self, run: Run, session: Session, version: PolicyVersion, unscaled: dict[str, int]
    ) -> None:
        self.run, self.session, self.version, self.unscaled = run, session, version, unscaled
        self.blocks = {
            block_id(seq, index): pk
            for pk, seq, index in session.blocks.values_list("pk", "message__seq", "index")
        }
        self.replacements: dict[str, Replacement] = {}
        self.opened: dict[str, Edit] = {}
        self.closed: dict[str, Edit] = {}

    def write(self, simulated: RunValue) -> None:
        """Insert everything of a run, parents before children."""
        self._write_replacements(simulated)
        self._write_edits(simulated)
        self._write_entries(simulated)
        self._leave_out_summaries()

    def _write_replacements(self, simulated: RunValue) -> None:
        made = [
            edit.replacement
            for revision in simulated.revisions
            for edit in revision.edits
            if edit.replacement is not None
        ]
        data = {block.id: wire.encode(wire.block_of(block)) for block in made}
        by_sha = {sha256(one): one for one in data.values()}
        team = self.session.team_id
        known: set[str] = set()
        shas = list(by_sha)
        for start in range(0, len(shas), BATCH):
            known.update(
                Blob.objects.filter(team_id=team, sha__in=shas[start : start + BATCH]).values_list(
                    "sha", flat=True
                )
            )
        Blob.objects.bulk_create(
            [Blob.of(team, one, sha) for sha, one in by_sha.items() if sha not in known],
            ignore_conflicts=True,
            batch_size=200,
        )
        self.replacements = {block.id: self._replacement(block, data[block.id]) for block in made}
        Replacement.objects.bulk_create(self.replacements.values(), batch_size=BATCH // 2)

    def _replacement(self, block: BlockValue, data: bytes) -> Replacement:
        return Replacement(
            run=self.run,
            position=block.position,
            role=block.role,
            type=block.type,
            kind=block.kind,
            tool=block.tool or "",
            tool_call=block.tool_call or "",
            tokens=self.unscaled[block.text],
            chars=block.chars,
            sha=sha256(data),
            preview=wire.preview(wire.block_of(block), block.tool or ""),
        )

    def _write_edits(self, simulated: RunValue) -> None:
        revisions = [self._revision(revision) for revision in simulated.revisions]
        Revision.objects.bulk_create(revisions, batch_size=BATCH // 2)
        rows: list[Edit] = []
        for row, revision in zip(revisions, simulated.revisions, strict=True):
            for index, edit in enumerate(revision.edits):
                made = self._edit(row, index, edit)
                rows.append(made)
                for target in edit.targets:
                    self.closed[target] = made
                if edit.replacement is not None:
                    self.opened[edit.replacement.id] = made
        Edit.objects.bulk_create(rows, batch_size=BATCH)

    def _revision(self, revision: values.Revision) -> Revision:
        return Revision(
            run=self.run,
            number=revision.number,
            step=revision.step,
            trigger=revision.trigger,
            reason=revision.reason[:400],
            policy_version=self.version,
            parameters=self.version.document,
            # The model also saw what the log hides; strategies do not.
            tokens_before=revision.tokens_before + self.session.hidden_tokens,
            tokens_after=revision.tokens_after + self.session.hidden_tokens,
        )

    def _edit(self, row: Revision, index: int, edit: values.Edit) -> Edit:
        replacement = self.replacements[edit.replacement.id] if edit.replacement else None
        return Edit(
            revision=row,
            index=index,
            strategy=edit.strategy,
            reason=edit.reason[:400],
            replacement=replacement,
        )

    def _write_entries(self, simulated: RunValue) -> None:
        rows = [
            Entry(
                run=self.run,
                position=entry.block.position,
                block_id=self.blocks.get(entry.block.id),
                replacement=self.replacements.get(entry.block.id),
                from_step=entry.from_step,
                to_step=entry.to_step,
                opened_by=self.opened.get(entry.block.id),
                closed_by=self.closed.get(entry.block.id),
            )
            for entry in simulated.entries
            if entry.to_step is not None or entry.opened_by is not None
        ]
        Entry.objects.bulk_create(rows, batch_size=BATCH // 2)

    def _leave_out_summaries(self) -> None:
        """Summaries that the log records never stand in a simulation: an empty interval says so."""
        left_out = summary_messages(self.session)
        rows = [
            Entry(
                run=self.run,
                position=block.position,
                block=block,
                from_step=max(block.born, 1),
                to_step=max(block.born, 1),
            )
            for block in Block.objects.filter(session=self.session, message__seq__in=left_out)
        ]
        Entry.objects.bulk_create(rows, batch_size=BATCH)
