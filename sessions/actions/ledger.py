"""The ledger of one session while records are appended: who is next, what stands."""

from __future__ import annotations

from collections.abc import Sequence

from compaction import wire
from sessions.actions.prepare import PreparedMessage
from sessions.actions.recorded import BATCH, RecordedRun
from sessions.importers import records
from sessions.models import Block, Message, ModelCall, Session


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
        self.recorded = RecordedRun(session)
        self._keys: set[str] = set()
        self._digests: list[tuple[str, int]] = []
        self._calls: dict[str, ModelCall] = {}
        self._new_calls: list[ModelCall] = []
        self._changed_calls: dict[str, ModelCall] = {}
        self._messages: list[Message] = []
        self._blocks: list[Block] = []

    @property
    def changed(self) -> bool:
        """Whether anything was taken in that was not stored before."""
        gathered = self.fresh, self._new_calls, self._changed_calls
        return any(gathered) or self.recorded.revision_count > 0

    # Taking in

    def take(
        self, incoming: Sequence[records.Record], prepared: dict[int, PreparedMessage]
    ) -> None:
        """Number every record that is not stored yet."""
        self._recall()
        for index, record in enumerate(incoming):
            match record:
                case records.Message():
                    self._take_message(prepared[index])
                case records.Call():
                    self._take_call(record)
                case records.Compaction():
                    self.recorded.compact(record)
                case records.Clear():
                    self.recorded.clear(record)
                case records.Rewind():
                    self.recorded.rewind(record)

    def _recall(self) -> None:
        """Load what is needed to tell new from known; nothing for a session that is new."""
        if not self.session.message_count:
            return
        rows = self.session.messages.order_by("seq").values_list("key", "digest", "seq")
        self._keys = {key for key, _, _ in rows if key}
        self._digests = [(digest, seq) for key, digest, seq in rows if not key]
        self._calls = {call.call: call for call in self.session.calls.all()}

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
        self.recorded.diverge(gone, f"rewind:{message.digest}")
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
            self.recorded.take_block(made)

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

    # Writing

    def write(self) -> None:
        """Insert the gathered rows, parents before children."""
        Message.objects.bulk_create(self._messages, batch_size=BATCH)
        Block.objects.bulk_create(self._blocks, batch_size=BATCH // 2)
        ModelCall.objects.bulk_create(self._new_calls, batch_size=BATCH)
        for call in self._changed_calls.values():
            call.save()
        self.recorded.write()


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
