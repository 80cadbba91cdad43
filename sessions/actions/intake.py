"""Intake: one session while records are appended: who is next, what stands."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sessions.actions.calls import UNNAMED, steps_of, told
from sessions.actions.known import Known, as_imported
from sessions.actions.prepare import PreparedBlock, PreparedMessage
from sessions.actions.recorded import BATCH, RecordedRun, Stand
from sessions.importers import records
from sessions.models import Blob, Block, Message, ModelCall, Pin, Retry, Session
from sessions.models.inserts import insert, stored_uuid

MESSAGE_COLUMNS = (
    *("session_id", "seq", "key", "digest", "role", "call", "born", "turn"),
    *("human", "late", "at", "line", "extra"),
)
BLOCK_COLUMNS = (
    *("session_id", "message_id", "index", "position", "born", "type", "kind", "tool"),
    *("tool_call", "file_path", "file_action", "file_start", "file_end", "error"),
    *("tokens", "estimated", "chars", "bytes", "sha", "preview"),
)
CALL_COLUMNS = (
    *("session_id", "call", "step", "model", "at", "fresh", "cache_read", "cache_write_5m"),
    *("cache_write_1h", "output", "reasoning", "reconciles", "usage_raw", "stop_reason"),
    *("cost_microusd", "context", "settings", "client"),
)
BLOB_COLUMNS = ("team_id", "sha", "size", "packed", "data")


class Taken(NamedTuple):
    """A message that was taken in, and the number that it got."""

    seq: int
    message: PreparedMessage

    @property
    def blocks(self) -> list[PreparedBlock]:
        """Its blocks."""
        return self.message.blocks


class Intake:
    """Numbers new records after what is stored, and gathers the rows to write.

    Steps count distinct model calls in order of appearance. A block is born at the step after its
    call (assistant) or at the next step (all else). Of a `live` sender each assistant message is
    of a call, whether it names one or not. Must be used inside a transaction that holds the
    session's lock.
    """

    def __init__(self, session: Session, *, live: bool = False) -> None:
        self.session = session
        self.live = live
        self._steps_before = session.step_count
        self._session_key = stored_uuid(session.pk)
        self.fresh: list[Taken] = []
        self.known = 0
        self.tokens_left = 0
        self.recorded = RecordedRun(session)
        self._calls: dict[str, ModelCall] = {}
        self._last_call = ""
        self._new_calls: list[ModelCall] = []
        self._changed_calls: dict[str, ModelCall] = {}
        self._messages: list[tuple[Any, ...]] = []
        self._blocks: list[tuple[int, PreparedBlock, int]] = []

    @property
    def changed(self) -> bool:
        """Whether anything was taken in that was not stored before."""
        gathered = self.fresh, self._new_calls, self._changed_calls
        return any(gathered) or self.recorded.revision_count > 0

    @property
    def calls(self) -> list[ModelCall]:
        """Calls that were taken in, or of which something new was told."""
        return [*self._new_calls, *self._changed_calls.values()]

    @property
    def reopened(self) -> int | None:
        """The lowest step of which something changed that was there before; None for none."""
        late = [born for _, _, born in self._blocks if born <= self._steps_before]
        return min([*late, *(call.step for call in self._changed_calls.values())], default=None)

    # Taking in

    def take(
        self,
        incoming: Sequence[records.Record],
        prepared: Mapping[int, PreparedMessage],
        known: Known | None = None,
    ) -> None:
        """Number every record that is not stored yet; `known` as an importer tells it by default.

        Messages with a key are known by it, others by the longest prefix of equal digests; what
        diverges after a known prefix is recorded as a rewind.
        """
        known = known or as_imported(self.session, prepared)
        self._recall(incoming, known)
        if known.gone and known.diverges_at is None:
            self._go_back(known.gone)
        for index, record in enumerate(incoming):
            match record:
                case records.Message():
                    self._message_at(index, prepared[index], known)
                case records.Call():
                    self._take_call(record)
                case records.Compaction():
                    self.recorded.compact(record)
                case records.Clear():
                    self.recorded.clear(record)
                case records.Rewind():
                    self.recorded.rewind(record)

    def _recall(self, incoming: Iterable[records.Record], known: Known) -> None:
        """Load what the batch names: its calls, and the revisions that it may repeat."""
        if not self.session.message_count and not self.session.step_count:
            return
        calls = {stored.call for stored in known.stored.values()}
        keys = []
        for record in incoming:
            if isinstance(record, records.Message | records.Call):
                calls.add(record.call or "")
            else:
                keys.append(record.key or f"line:{record.line}")
        self.recorded.recall(keys)
        wanted = list(calls - {""})
        for start in range(0, len(wanted), BATCH):
            rows = self.session.calls.filter(call__in=wanted[start : start + BATCH])
            self._calls.update({row.call: row for row in rows})
        self._recall_renamed([one for one in wanted if one not in self._calls])

    def _recall_renamed(self, missing: Iterable[str]) -> None:
        """Calls that got their id after their messages were stored."""
        steps = steps_of(missing)
        for row in self.session.calls.filter(step__in=steps) if steps else ():
            self._calls[f"{UNNAMED}{row.step}"] = row

    def _message_at(self, index: int, message: PreparedMessage, known: Known) -> None:
        stored = known.stored.get(index)
        if stored is not None:
            self.known += 1
            self._last_call = stored.call or self._last_call
            return
        if index == known.diverges_at:
            self._diverge(message, known.gone)
        self.take_message(message, taken=known.taken)

    def _diverge(self, message: PreparedMessage, gone: set[int]) -> None:
        # A live sender may go back twice in the same way; a log is read again and again.
        key = self._next_rewind if self.live else f"rewind:{message.digest}"
        self.recorded.recall([key])
        reason = "the sender's history diverged from what was stored"
        self.left("rewind", "rewind", reason, gone, key)

    def _go_back(self, gone: set[int]) -> None:
        reason = "the sender's history ends before what was stored"
        self.left("rewind", "rewind", reason, gone, self._next_rewind)

    @property
    def _next_rewind(self) -> str:
        return f"rewind@revision-{self.recorded.run.head + 1}"

    def left(self, trigger: str, strategy: str, reason: str, seqs: set[int], key: str) -> None:
        """Messages leave the recorded context by themselves (see `RecordedRun.leave`)."""
        self.tokens_left += self.recorded.leave(trigger, strategy, reason, seqs, key)

    def take_message(self, message: PreparedMessage, taken: Container[str] = ()) -> int:
        """Number a message that is new, and leave it no key that is `taken`; returns its seq."""
        record, session = message.record, self.session
        call = self._call_of(record)
        session.message_count += 1
        if record.human:
            session.turn_count += 1
        born = (call.step if call else session.step_count) + 1
        self._messages.append(
            (
                self._session_key,
                session.message_count,
                None if record.key is None or record.key in taken else record.key,
                message.digest,
                record.role,
                call.call if call else "",
                born,
                session.turn_count,
                record.human,
                self.live and born <= session.step_count,
                record.at,
                record.line,
                json.dumps(record.extra) if record.extra else None,
            )
        )
        self.fresh.append(Taken(session.message_count, message))
        if record.at is not None:
            session.started_at = min(session.started_at or record.at, record.at)
            session.ended_at = max(session.ended_at or record.at, record.at)
        self._take_blocks(message, born)
        return session.message_count

    def _call_of(self, record: records.Message) -> ModelCall | None:
        if record.call:
            call = self._call(record.call, record.at)
        elif self.live and record.role == "assistant":
            call = self._call(f"{UNNAMED}{self.session.step_count + 1}", record.at)
        else:
            return None
        self._last_call = call.call
        return call

    def _take_blocks(self, message: PreparedMessage, born: int) -> None:
        session, record = self.session, message.record
        for block in message.blocks:
            position = session.block_count
            session.block_count += 1
            session.tool_call_count += block.type == "tool_use"
            session.error_count += block.error
            self._blocks.append((session.message_count, block, born))
            self.recorded.take_block(
                Stand(
                    position,
                    None,
                    session.message_count,
                    record.key,
                    record.role,
                    born,
                    block.type,
                    block.kind,
                    block.tool,
                    block.tool_call,
                    block.tokens,
                )
            )

    def _call(self, call: str, at: int | None, model: str = "") -> ModelCall:
        known = self._calls.get(call)
        if known is not None:
            return known
        self.session.step_count += 1
        if self.live:
            model = model or self.session.model
        made = ModelCall(
            session=self.session, call=call, step=self.session.step_count, at=at, model=model[:120]
        )
        self._calls[call] = made
        self._new_calls.append(made)
        return made

    def _take_call(self, record: records.Call) -> None:
        named = record.call or self._last_call
        if not named:
            return
        call = self._call(named, record.at, record.model)
        if told(call, record) and call.pk is not None:
            self._changed_calls[call.call] = call

    # Writing

    def write(self) -> None:
        """Insert the gathered rows, parents before children."""
        self._write_blobs()
        insert(Message, MESSAGE_COLUMNS, self._messages)
        if self._messages:
            self._write_blocks(self._message_ids())
        insert(ModelCall, CALL_COLUMNS, [self._call_row(call) for call in self._new_calls])
        for call in self._changed_calls.values():
            call.save()
        self.recorded.write()

    def _message_ids(self) -> dict[int, int]:
        first = self.fresh[0].seq
        ids = dict(self.session.messages.filter(seq__gte=first).values_list("seq", "pk"))
        pins = [ids[one.seq] for one in self.fresh if one.message.record.pinned]
        Pin.objects.bulk_create([Pin(session=self.session, message_id=pk) for pk in pins])
        Retry.objects.bulk_create(self._retries(ids))
        return ids

    def _retries(self, ids: Mapping[int, int]) -> list[Retry]:
        # What a response says is born with the step after it.
        born = {seq: step for seq, _, step in self._blocks}
        found = ((one.seq, one.message.record.retry_of) for one in self.fresh)
        return [
            Retry(session=self.session, message_id=ids[seq], step=born[seq] - 1, of_step=again)
            for seq, again in found
            if again is not None
        ]

    def _call_row(self, call: ModelCall) -> tuple[Any, ...]:
        return (self._session_key, *(getattr(call, name) for name in CALL_COLUMNS[1:]))

    def _write_blobs(self) -> None:
        team = stored_uuid(self.session.team_id)
        by_sha = {block.sha: block for one in self.fresh for block in one.blocks}
        rows = [(team, b.sha, b.size, b.packed, b.stored) for b in by_sha.values()]
        insert(Blob, BLOB_COLUMNS, rows, known=True)

    def _write_blocks(self, ids: Mapping[int, int]) -> None:
        session, rows = self._session_key, []
        position = self.session.block_count - len(self._blocks)
        index, before = 0, 0
        for seq, block, born in self._blocks:
            index = index + 1 if seq == before else 0
            before = seq
            rows.append(_block_row(session, ids[seq], index, position, born, block))
            position += 1
        insert(Block, BLOCK_COLUMNS, rows)


def _block_row(
    session: Any, message: int, index: int, position: int, born: int, block: PreparedBlock
) -> tuple[Any, ...]:
    file = block.file
    return (
        session,
        message,
        index,
        position,
        born,
        block.type,
        block.kind,
        block.tool,
        block.tool_call,
        file.path if file else "",
        file.action if file else "",
        file.start if file else None,
        file.end if file else None,
        block.error,
        block.tokens,
        block.estimated,
        block.chars,
        block.size,
        block.sha,
        block.preview,
    )
