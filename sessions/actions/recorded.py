"""The recorded run of one session while records are appended: what stands, and what changed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from compaction import wire
from sessions.importers import records
from sessions.models import Blob, Block, Edit, Entry, Replacement, Revision, Run, Session
from sessions.models.blobs import sha256

Row = TypeVar("Row")

BATCH = 500
"""Rows per INSERT: below SQLite's limit on variables for our widest row."""

CLEARED = "[cleared by the agent; the log does not show what stood here instead]"

_STAYS = frozenset({"system", "tools"})
"""Kinds that no recorded compaction removes: they lie before the history."""


@dataclass(slots=True)
class _Stand:
    """An original block's place in the context: itself, or the entry of what replaced it."""

    block: Block
    replaced: Entry | None = None


@dataclass(slots=True)
class _Change:
    """A revision while its rows are gathered."""

    revision: Revision
    edits: list[Edit] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    closed: list[Entry] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)


class RecordedRun:
    """Gathers recorded compactions, clearings and rewinds as revisions of the recorded run.

    A revision takes effect at the step after the newest one. Revisions are known again by their
    key. Must be used inside a transaction that holds the session's lock.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run, _ = Run.objects.get_or_create(session=session, origin=Run.Origin.RECORDED)
        self._known: set[str] = set()
        self._new_blocks: list[Block] = []
        self._changes: list[_Change] = []
        self._standing: dict[int, _Stand] | None = None
        self._awaiting_summary: Edit | None = None
        if session.message_count:
            self._known = set(self.run.revisions.values_list("key", flat=True))

    @property
    def revision_count(self) -> int:
        """Revisions that were new."""
        return len(self._changes)

    def take_block(self, block: Block) -> None:
        """A new original stands from now on; a summary answers the compaction that awaits one."""
        self._new_blocks.append(block)
        if self._standing is not None:
            self._standing[block.position] = _Stand(block)
        if block.kind == "summary" and self._awaiting_summary is not None:
            self._awaiting_summary.summary = block
            self._awaiting_summary = None

    def compact(self, record: records.Compaction) -> None:
        """All but what the log keeps, and what lies before the history, leaves the context."""
        kept = set(record.keep)
        change = self._close(
            record.trigger,
            "compaction",
            "recorded in the log",
            lambda block: block.kind not in _STAYS and block.message.key not in kept,
            key=record.key or f"line:{record.line}",
        )
        if change is None:
            return
        change.revision.at = record.at
        change.revision.tokens_before = record.tokens_before
        change.revision.tokens_after = record.tokens_after
        change.revision.tokens_stated = record.tokens_before is not None
        self._awaiting_summary = change.edits[0]
        self.session.compaction_count += 1

    def rewind(self, record: records.Rewind) -> None:
        """The messages that were left behind leave the context."""
        dropped = set(record.drop)
        change = self._close(
            "rewind",
            "rewind",
            "the session went back",
            lambda block: block.message.key in dropped,
            key=record.key or f"line:{record.line}",
        )
        if change is not None:
            change.revision.at = record.at

    def diverge(self, seqs: set[int], key: str) -> None:
        """A sender's whole history no longer begins with these messages: a rewind as well."""
        self._close(
            "rewind",
            "rewind",
            "the sender's history diverged from what was stored",
            lambda block: block.message.seq in seqs,
            key=key,
        )

    def clear(self, record: records.Clear) -> None:
        """Tool results give way to a replacement that says what is known of it."""
        change = self._begin(
            "clear", "recorded in the log", key=record.key or f"line:{record.line}"
        )
        if change is None:
            return
        change.revision.at = record.at
        wanted = set(record.tool_calls)
        for stand in list(self._stands().values()):
            block = stand.block
            if block.type == "tool_result" and block.tool_call in wanted and not stand.replaced:
                self._replace(change, stand)

    def _begin(self, trigger: str, reason: str, key: str) -> _Change | None:
        if key in self._known:
            return None
        self._known.add(key)
        self.run.head += 1
        revision = Revision(
            run=self.run,
            number=self.run.head,
            step=self.session.step_count + 1,
            key=key,
            trigger=trigger,
            reason=reason,
        )
        change = _Change(revision)
        self._changes.append(change)
        return change

    def _close(
        self, trigger: str, strategy: str, reason: str, leaves: Callable[[Block], bool], key: str
    ) -> _Change | None:
        """A revision of one edit that takes out every block that leaves, or its replacement."""
        change = self._begin(trigger, reason, key)
        if change is None:
            return None
        edit = Edit(revision=change.revision, index=0, strategy=strategy)
        change.edits.append(edit)
        for stand in [stand for stand in self._stands().values() if leaves(stand.block)]:
            self._end(change, stand, edit)
            del self._stands()[stand.block.position]
        return change

    def _end(self, change: _Change, stand: _Stand, edit: Edit) -> None:
        step = change.revision.step
        if stand.replaced is not None:
            stand.replaced.to_step, stand.replaced.closed_by = step, edit
            if stand.replaced.pk is not None:
                change.closed.append(stand.replaced)
            return
        change.entries.append(
            Entry(
                run=self.run,
                position=stand.block.position,
                block=stand.block,
                from_step=min(stand.block.born, step),
                to_step=step,
                closed_by=edit,
            )
        )

    def _replace(self, change: _Change, stand: _Stand) -> None:
        block = stand.block
        data = wire.encode(
            {"type": "tool_result", "tool_use_id": block.tool_call, "content": CLEARED}
        )
        Blob.objects.bulk_create([Blob.of(self.session.team_id, data)], ignore_conflicts=True)
        replacement = Replacement(
            run=self.run,
            position=block.position,
            role=block.message.role,
            type=block.type,
            kind=block.kind,
            tool=block.tool,
            tool_call=block.tool_call,
            tokens=len(CLEARED) // 4,
            chars=len(CLEARED),
            sha=sha256(data),
            preview=f"{block.tool} {CLEARED}"[:200],
        )
        edit = Edit(
            revision=change.revision,
            index=len(change.edits),
            strategy="clear",
            replacement=replacement,
        )
        change.edits.append(edit)
        change.replacements.append(replacement)
        self._end(change, stand, edit)
        stand.replaced = Entry(
            run=self.run,
            position=block.position,
            replacement=replacement,
            from_step=change.revision.step,
            opened_by=edit,
        )
        change.entries.append(stand.replaced)

    def _stands(self) -> dict[int, _Stand]:
        """What stands in the recorded context now, by position; loaded when first asked for."""
        if self._standing is None:
            stored = self.session.blocks.exclude(entries__run=self.run).select_related("message")
            self._standing = {block.position: _Stand(block) for block in stored}
            open_entries = self.run.entries.filter(to_step=None, block=None)
            by_position = {entry.position: entry for entry in open_entries}
            replaced = self.session.blocks.filter(position__in=by_position)
            for block in replaced.select_related("message"):
                self._standing[block.position] = _Stand(block, by_position[block.position])
            self._standing.update({block.position: _Stand(block) for block in self._new_blocks})
            self._standing = dict(sorted(self._standing.items()))
        return self._standing

    def write(self) -> None:
        """Insert the gathered rows, parents before children; blocks must be stored already."""
        changes = self._changes
        Revision.objects.bulk_create([c.revision for c in changes], batch_size=BATCH)
        Replacement.objects.bulk_create(_all(c.replacements for c in changes), batch_size=BATCH)
        Edit.objects.bulk_create(_all(c.edits for c in changes), batch_size=BATCH)
        Entry.objects.bulk_create(_all(c.entries for c in changes), batch_size=BATCH)
        closed = _all(c.closed for c in changes)
        Entry.objects.bulk_update(closed, ["to_step", "closed_by"], batch_size=BATCH // 2)
        self.run.steps = self.session.step_count
        self.run.save()


def _all(groups: Iterable[list[Row]]) -> list[Row]:
    return [item for group in groups for item in group]
