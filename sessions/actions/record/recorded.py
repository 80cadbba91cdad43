"""The recorded run during an append: its current context, and changes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import QuerySet

from compaction.context import wire
from compaction.context.session import MOST_TOKENS
from sessions.actions.record.prepare import PreparedBlock
from sessions.importers import records
from sessions.models import Blob, Block, Edit, Entry, Replacement, Revision, Run, Session
from sessions.models.record.blobs import sha256

BATCH = 500
"""Rows per INSERT: below SQLite's limit on variables for our widest row."""

CLEARED = "[cleared by the agent; the log does not contain its replacement]"

STAYS = frozenset({"system", "tools"})
"""Kinds that precede the history: recorded compactions remove them only if the log says so."""


@dataclass(slots=True)
class Stand:
    """An original block in context, and its replacement.

    `pk` is None until the block is stored; `seq` and `key` are those of its message.
    """

    position: int
    pk: int | None
    seq: int
    key: str | None
    role: str
    born: int
    type: str
    kind: str
    tool: str
    tool_call: str
    tokens: int
    replaced: Entry | None = None

    @classmethod
    def of(
        cls, position: int, seq: int, message: records.Message, block: PreparedBlock, born: int
    ) -> Stand:
        """A block that is not stored yet."""
        about = (block.type, block.kind, block.tool, block.tool_call, block.tokens)
        return cls(position, None, seq, message.key, message.role, born, *about)


_COLUMNS = (
    *("position", "pk", "message__seq", "message__key", "message__role"),
    *("born", "type", "kind", "tool", "tool_call", "tokens"),
)
"""The stored columns of a Stand, in order."""


@dataclass(slots=True)
class PendingRevision:
    """A revision while its rows are being collected."""

    revision: Revision
    edits: list[Edit] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    closed: list[Entry] = field(default_factory=list)
    replacements: list[Replacement] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    unstored: list[tuple[Entry, Stand]] = field(default_factory=list)


class RecordedRun:
    """Collects recorded compactions, clearings and rewinds as revisions of the recorded run.

    A revision takes effect at the step after the newest one, and is recognized by its key. Use in
    a transaction that holds the session's lock.
    """

    def __init__(self, session: Session, run: Run, new: Iterable[Stand] = ()) -> None:
        self.session, self.run = session, run
        self.changes: list[PendingRevision] = []
        self._known: set[str] = set()
        self._new = list(new)
        self._standing: dict[int, Stand] | None = None
        self._awaiting_summary: Edit | None = None
        self._summaries: list[tuple[Edit, Stand]] = []

    def recall(self, keys: Sequence[str]) -> None:
        """Load which of these revisions are stored."""
        if self.run.head and keys:
            stored = self.run.revisions.filter(key__in=keys)
            self._known.update(stored.values_list("key", flat=True))

    def take_block(self, block: Stand) -> None:
        """Add a new original; a summary completes the compaction that awaits one."""
        self._new.append(block)
        if self._standing is not None:
            self._standing[block.position] = block
        if block.kind == "summary" and self._awaiting_summary is not None:
            self._summaries.append((self._awaiting_summary, block))
            self._awaiting_summary = None

    def standing(self) -> list[Stand]:
        """The blocks in the recorded context, in order."""
        return list(self._stands().values())

    def compact(self, record: records.Compaction) -> None:
        """Remove everything except what the log keeps and, unless it is exact, what precedes the
        history."""
        kept = set(record.keep)
        stays = frozenset() if record.exact else STAYS
        change = self._close(
            record.trigger,
            "compaction",
            "recorded in the log",
            lambda block: block.kind not in stays and block.key not in kept,
            key=record.key or f"line:{record.line}",
        )
        if change is None:
            return
        change.revision.at = record.at
        change.revision.tokens_before = _plausible(record.tokens_before)
        change.revision.tokens_after = _plausible(record.tokens_after)
        change.revision.tokens_stated = change.revision.tokens_before is not None
        self._await_summary(change)

    def rewind(self, record: records.Rewind) -> None:
        """Remove the abandoned messages."""
        dropped = set(record.drop)
        change = self._close(
            "rewind",
            "rewind",
            "the session went back",
            lambda block: block.key in dropped,
            key=record.key or f"line:{record.line}",
        )
        if change is not None:
            change.revision.at = record.at

    def leave(self, trigger: str, strategy: str, reason: str, seqs: set[int], key: str) -> int:
        """Remove messages by a strategy of Edit.LEFT; return their scaled tokens."""
        change = self._begin(trigger, reason, key)
        if change is None:
            return 0
        left = self._end_all(change, strategy, self._standing_of(seqs) if seqs else [])
        if strategy == Edit.SUMMARIZED:
            self._await_summary(change)
        return left

    def _await_summary(self, change: PendingRevision) -> None:
        self._awaiting_summary = change.edits[0]
        self.session.compaction_count += 1

    def clear(self, record: records.Clear) -> None:
        """Replace tool results by a stub with what is known of the clearing."""
        change = self._begin(
            "clear", "recorded in the log", key=record.key or f"line:{record.line}"
        )
        if change is None:
            return
        change.revision.at = record.at
        wanted = set(record.tool_calls)
        for stand in list(self._stands().values()):
            if stand.type == "tool_result" and stand.tool_call in wanted and not stand.replaced:
                self._replace(change, stand)

    def _begin(self, trigger: str, reason: str, key: str) -> PendingRevision | None:
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
        change = PendingRevision(revision)
        self.changes.append(change)
        return change

    def _close(
        self, trigger: str, strategy: str, reason: str, leaves: Callable[[Stand], bool], key: str
    ) -> PendingRevision | None:
        """A revision with one edit that removes the selected blocks, or their replacements."""
        change = self._begin(trigger, reason, key)
        if change is not None:
            gone = [stand for stand in self._stands().values() if leaves(stand)]
            self._end_all(change, strategy, gone)
        return change

    def _end_all(self, change: PendingRevision, strategy: str, gone: list[Stand]) -> int:
        edit = Edit(revision=change.revision, index=0, strategy=strategy)
        change.edits.append(edit)
        for stand in gone:
            self._end(change, stand, edit)
            if self._standing is not None:
                del self._standing[stand.position]
        return sum(self.session.scaled(stand.tokens) for stand in gone)

    def _end(self, change: PendingRevision, stand: Stand, edit: Edit) -> None:
        step = change.revision.step
        if stand.replaced is not None:
            stand.replaced.to_step, stand.replaced.closed_by = step, edit
            if stand.replaced.pk is not None:
                change.closed.append(stand.replaced)
            return
        ended = Entry(
            run=self.run,
            position=stand.position,
            block_id=stand.pk,
            from_step=min(stand.born, step),
            to_step=step,
            closed_by=edit,
        )
        change.entries.append(ended)
        if stand.pk is None:
            change.unstored.append((ended, stand))

    def _replace(self, change: PendingRevision, stand: Stand) -> None:
        data = wire.encode(
            {"type": "tool_result", "tool_use_id": stand.tool_call, "content": CLEARED}
        )
        change.blobs.append(Blob.of(self.session.team_id, data))
        replacement = Replacement(
            run=self.run,
            position=stand.position,
            role=stand.role,
            type=stand.type,
            kind=stand.kind,
            tool=stand.tool,
            tool_call=stand.tool_call,
            tokens=len(CLEARED) // 4,
            chars=len(CLEARED),
            sha=sha256(data),
            preview=f"{stand.tool} {CLEARED}"[:200],
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
            position=stand.position,
            replacement=replacement,
            from_step=change.revision.step,
            opened_by=edit,
        )
        change.entries.append(stand.replaced)

    def _stands(self) -> dict[int, Stand]:
        """The blocks in the recorded context by position; loaded on first use."""
        if self._standing is None:
            found = [*self._stored(self.session.blocks.all()), *self._new]
            self._standing = {stand.position: stand for stand in found}
            self._standing = dict(sorted(self._standing.items()))
        return self._standing

    def _standing_of(self, seqs: set[int]) -> list[Stand]:
        """The blocks of these messages in context, without reading all others."""
        if self._standing is not None:
            found = list(self._standing.values())
        else:
            between = {"message__seq__gte": min(seqs), "message__seq__lte": max(seqs)}
            found = [*self._stored(self.session.blocks.filter(**between)), *self._new]
        return [stand for stand in found if stand.seq in seqs]

    def _stored(self, blocks: QuerySet[Block]) -> list[Stand]:
        standing = blocks.exclude(entries__run=self.run).values_list(*_COLUMNS)
        found = [Stand(*row) for row in standing.order_by("position")]
        open_entries = self.run.entries.filter(to_step=None, block=None)
        by_position = {entry.position: entry for entry in open_entries}
        if by_position:
            replaced = blocks.filter(position__in=by_position).values_list(*_COLUMNS)
            found += [replace(Stand(*row), replaced=by_position[row[0]]) for row in replaced]
        return found

    def resolve(self) -> None:
        """Set the ids of new blocks that edits refer to, once they are stored."""
        new = [stand for stand in self._new if stand.pk is None]
        if new:
            first = new[0].position
            rows = self.session.blocks.filter(position__gte=first).values_list("position", "pk")
            by_position = dict(rows)
            for stand in new:
                stand.pk = by_position[stand.position]
        for change in self.changes:
            for entry, stand in change.unstored:
                entry.block_id = stand.pk
        for edit, stand in self._summaries:
            edit.summary_id = stand.pk


def _plausible(stated: int | None) -> int | None:
    """A log's own size of a context, if one may be as large; else it is counted."""
    return stated if stated is not None and 0 <= stated <= MOST_TOKENS else None
