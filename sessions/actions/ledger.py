"""The ledger of one session while records are appended: who is next, what stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction import wire
from sessions.actions.prepare import PreparedMessage
from sessions.importers import records
from sessions.models import (
    Blob,
    Block,
    Edit,
    Entry,
    Message,
    ModelCall,
    Replacement,
    Revision,
    Run,
    Session,
)
from sessions.models.blobs import sha256

BATCH = 500
"""Rows per INSERT: below SQLite's limit on variables for our widest row."""

_CLEARED = "[cleared by the agent; the log does not show what stood here instead]"
_STAYS = frozenset({"system", "tools"})
"""Kinds that no recorded compaction removes: they lie before the history."""


@dataclass(slots=True)
class _Change:
    """A recorded revision while its rows are gathered."""

    revision: Revision
    edits: list[Edit]
    entries: list[Entry]
    replacements: list[Replacement]


class Ledger:
    """Numbers new records after what is stored, and gathers the rows to write.

    Steps count distinct model calls in order of appearance. A block is born at the step after its
    call (assistant) or at the next step (all else). Must be used inside a transaction that holds
    the session's lock.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.fresh: list[PreparedMessage] = []
        self.known = 0
        self.run, _ = Run.objects.get_or_create(session=session, origin=Run.Origin.RECORDED)
        self._keys: set[str] = set()
        self._digests: list[tuple[str, int]] = []
        self._calls: dict[str, ModelCall] = {}
        self._new_calls: list[ModelCall] = []
        self._changed_calls: dict[str, ModelCall] = {}
        self._messages: list[Message] = []
        self._blocks: list[Block] = []
        self._changes: list[_Change] = []
        self._revision_keys: set[str] = set()
        self._standing: dict[int, Block] | None = None
        self._keys_by_message: dict[int, str] = {}
        self._awaiting_summary: Edit | None = None

    @property
    def revision_count(self) -> int:
        """Recorded revisions that were new."""
        return len(self._changes)

    # Taking in

    def take(
        self, incoming: Sequence[records.Record], prepared: dict[int, PreparedMessage]
    ) -> None:
        """Number every record that is not stored yet."""
        self._recall(incoming)
        for index, record in enumerate(incoming):
            match record:
                case records.Message():
                    self._take_message(prepared[index])
                case records.Call():
                    self._take_call(record)
                case records.Compaction():
                    self._take_compaction(record)
                case records.Clear():
                    self._take_clear(record)
                case records.Rewind():
                    self._take_rewind(record)

    def _recall(self, incoming: Sequence[records.Record]) -> None:
        """Load what is needed to tell new from known; nothing for a session that is new."""
        if not self.session.message_count:
            return
        rows = self.session.messages.order_by("seq").values_list("key", "digest", "seq")
        self._keys = {key for key, _, _ in rows if key}
        self._digests = [(digest, seq) for key, digest, seq in rows if not key]
        self._calls = {call.call: call for call in self.session.calls.all()}
        self._revision_keys = set(self.run.revisions.values_list("key", flat=True))

    def _take_message(self, message: PreparedMessage) -> None:
        if self._is_known(message):
            self.known += 1
            return
        record, session = message.record, self.session
        call = self._call(record.call, record.at) if record.call else None
        session.message_count += 1
        if record.human:
            session.turn_count += 1
        row = Message(
            session=session,
            seq=session.message_count,
            key=record.key,
            digest=message.digest,
            role=record.role,
            call=record.call or "",
            born=(call.step if call else session.step_count) + 1,
            turn=session.turn_count,
            human=record.human,
            at=record.at,
            line=record.line,
        )
        self.fresh.append(message)
        self._messages.append(row)
        if record.at is not None:
            session.started_at = min(session.started_at or record.at, record.at)
            session.ended_at = max(session.ended_at or record.at, record.at)
        self._take_blocks(row, message)

    def _is_known(self, message: PreparedMessage) -> bool:
        if message.record.key is not None:
            return message.record.key in self._keys
        if not self._digests:
            return False
        digest, _ = self._digests[0]
        if digest == message.digest:
            self._digests.pop(0)
            return True
        gone = {seq for _, seq in self._digests}
        self._digests = []
        self._close(
            "rewind",
            "the sender's history diverged from what was stored",
            [b for b in self._stands().values() if b.message.seq in gone],
            key=f"rewind:{message.digest}",
        )
        return False

    def _take_blocks(self, row: Message, message: PreparedMessage) -> None:
        for index, block in enumerate(message.blocks):
            made = Block(
                session=self.session,
                message=row,
                index=index,
                position=self.session.block_count,
                born=row.born,
                type=block.type,
                kind=block.kind,
                tool=block.tool,
                tool_call=block.tool_call,
                file_path=block.file.path[:600] if block.file else "",
                file_action=block.file.action if block.file else "",
                file_start=block.file.start if block.file else None,
                file_end=block.file.end if block.file else None,
                error=block.error,
                tokens=block.tokens,
                estimated=block.estimated,
                chars=block.chars,
                bytes=len(block.data),
                sha=block.sha,
                preview=block.preview,
            )
            self.session.block_count += 1
            self.session.tool_call_count += block.type == "tool_use"
            self.session.error_count += block.error
            self._blocks.append(made)
            if self._standing is not None:
                self._standing[made.position] = made
            if made.kind == "summary" and self._awaiting_summary is not None:
                self._awaiting_summary.summary = made
                self._awaiting_summary = None

    def _call(self, call: str, at: int | None, model: str = "") -> ModelCall:
        known = self._calls.get(call)
        if known is not None:
            return known
        self.session.step_count += 1
        made = ModelCall(
            session=self.session, call=call, step=self.session.step_count, at=at, model=model[:120]
        )
        self._calls[call] = made
        self._new_calls.append(made)
        return made

    def _take_call(self, record: records.Call) -> None:
        call = self._call(record.call, record.at, record.model)
        before = _facts(call)
        call.model = record.model[:120] or call.model
        call.at = call.at if call.at is not None else record.at
        call.stop_reason = record.stop_reason[:60] or call.stop_reason
        if record.usage is not None:
            call.fresh = record.usage.fresh
            call.cache_read = record.usage.cache_read
            call.cache_write_5m = record.usage.cache_write_5m
            call.cache_write_1h = record.usage.cache_write_1h
            call.output = record.usage.output
            call.reasoning = record.usage.reasoning
            call.reconciles = record.reconciles
            call.usage_raw = wire.encode({"raw": record.usage_raw}).decode("utf-8", "replace")
        if call.pk is not None and _facts(call) != before:
            self._changed_calls[call.call] = call

    # Recorded revisions

    def _take_compaction(self, record: records.Compaction) -> None:
        kept = set(record.keep)
        gone = [
            block
            for block in self._stands().values()
            if block.kind not in _STAYS and block.message.key not in kept
        ]
        change = self._close(
            record.trigger, "recorded in the log", gone, key=record.key or f"line:{record.line}"
        )
        if change is None:
            return
        change.revision.at = record.at
        change.revision.tokens_before = record.tokens_before
        change.revision.tokens_after = record.tokens_after
        change.revision.tokens_stated = record.tokens_before is not None
        self._awaiting_summary = change.edits[0]
        self.session.compaction_count += 1

    def _take_rewind(self, record: records.Rewind) -> None:
        dropped = set(record.drop)
        gone = [block for block in self._stands().values() if block.message.key in dropped]
        self._close(
            "rewind", "the session went back", gone, key=record.key or f"line:{record.line}"
        )

    def _take_clear(self, record: records.Clear) -> None:
        wanted = set(record.tool_calls)
        gone = [
            block
            for block in self._stands().values()
            if block.type == "tool_result" and block.tool_call in wanted
        ]
        change = self._close(
            "clear", "recorded in the log", [], key=record.key or f"line:{record.line}"
        )
        if change is None:
            return
        change.revision.at = record.at
        for block in gone:
            self._replace(change, block, _CLEARED)

    def _close(self, trigger: str, reason: str, gone: Iterable[Block], key: str) -> _Change | None:
        """A revision that takes these blocks out in one edit; None where it is known already."""
        if key in self._revision_keys:
            return None
        self._revision_keys.add(key)
        self.run.head += 1
        revision = Revision(
            run=self.run,
            number=self.run.head,
            step=self.session.step_count + 1,
            key=key,
            trigger=trigger,
            reason=reason,
        )
        change = _Change(revision, [], [], [])
        if trigger != "clear":
            edit = Edit(revision=revision, index=0, strategy=trigger_strategy(trigger))
            change.edits.append(edit)
            for block in gone:
                self._end(change, block, edit)
        self._changes.append(change)
        return change

    def _replace(self, change: _Change, block: Block, text: str) -> None:
        data = wire.encode({"type": "tool_result", "tool_use_id": block.tool_call, "content": text})
        Blob.objects.bulk_create([Blob.of(self.session.team_id, data)], ignore_conflicts=True)
        replacement = Replacement(
            run=self.run,
            position=block.position,
            role=block.message.role,
            type=block.type,
            kind=block.kind,
            tool=block.tool,
            tool_call=block.tool_call,
            tokens=len(text) // 4,
            chars=len(text),
            sha=sha256(data),
            preview=text,
        )
        edit = Edit(
            revision=change.revision,
            index=len(change.edits),
            strategy="clear",
            replacement=replacement,
        )
        change.edits.append(edit)
        change.replacements.append(replacement)
        self._end(change, block, edit)
        change.entries.append(
            Entry(
                run=self.run,
                position=block.position,
                replacement=replacement,
                from_step=change.revision.step,
                opened_by=edit,
            )
        )

    def _end(self, change: _Change, block: Block, edit: Edit) -> None:
        self._stands().pop(block.position, None)
        change.entries.append(
            Entry(
                run=self.run,
                position=block.position,
                block=block,
                from_step=min(block.born, change.revision.step),
                to_step=change.revision.step,
                closed_by=edit,
            )
        )

    def _stands(self) -> dict[int, Block]:
        """Blocks that stand in the recorded context now, by position; loaded when first asked for."""
        if self._standing is None:
            stored = (
                self.session.blocks.exclude(entries__run=self.run)
                .select_related("message")
                .order_by("position")
            )
            self._standing = {block.position: block for block in stored}
            self._standing.update({block.position: block for block in self._blocks})
            for change in self._changes:
                for entry in change.entries:
                    self._standing.pop(entry.position, None)
        return self._standing

    # Writing

    def write(self) -> None:
        """Insert the gathered rows, parents before children."""
        Message.objects.bulk_create(self._messages, batch_size=BATCH)
        Block.objects.bulk_create(self._blocks, batch_size=BATCH // 2)
        ModelCall.objects.bulk_create(self._new_calls, batch_size=BATCH)
        for call in self._changed_calls.values():
            call.save()
        self._write_changes()
        self.run.steps = self.session.step_count
        self.run.save()

    def _write_changes(self) -> None:
        changes = self._changes
        Revision.objects.bulk_create([c.revision for c in changes], batch_size=BATCH)
        Replacement.objects.bulk_create(
            [r for c in changes for r in c.replacements], batch_size=BATCH
        )
        Edit.objects.bulk_create([e for c in changes for e in c.edits], batch_size=BATCH)
        Entry.objects.bulk_create([e for c in changes for e in c.entries], batch_size=BATCH)


def trigger_strategy(trigger: str) -> str:
    """The strategy that a recorded trigger stands for."""
    return trigger if trigger in ("rewind", "clear") else "compaction"


def _facts(call: ModelCall) -> tuple[object, ...]:
    return (
        call.model,
        call.at,
        call.fresh,
        call.cache_read,
        call.cache_write_5m,
        call.cache_write_1h,
        call.output,
        call.stop_reason,
    )
