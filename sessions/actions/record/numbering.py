"""Numbering: give new records their place after the stored ones, as rows to write."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from compaction.context.edits import Trigger
from sessions.actions.record.calls import UNNAMED, steps_of, update_call
from sessions.actions.record.known import KnownMessages, as_imported
from sessions.actions.record.prepare import PreparedBlock, PreparedMessage
from sessions.actions.record.recorded import RecordedRun, Stand
from sessions.importers import records
from sessions.importers.own_compactions import summary_from, trigger_of
from sessions.models import Edit, ModelCall, Run, Session
from sessions.models.web.statements import StatementAmong, given_uuid


class Taken(NamedTuple):
    """A numbered message."""

    seq: int
    message: PreparedMessage
    blocks: list[PreparedBlock]


def recorded_run(session: Session) -> Run:
    """The recorded run of a session, created on demand."""
    found = Run.of(session, Run.Origin.RECORDED)
    return found or Run.objects.get_or_create(session=session, origin=Run.Origin.RECORDED)[0]


_CALLS = StatementAmong(
    lambda names: ModelCall.objects.filter(session_id=given_uuid("session"), call__in=names)
)


class Numbering:
    """Numbers new records and collects the rows to write.

    Steps count distinct model calls in order of appearance. A block is born at the step after its
    call (assistant) or at the next step (all others). In `live` sessions each assistant message
    belongs to a call, whether named or not. Use inside a transaction that holds the session's lock.

    `fresh` are the new messages, `messages` their columns without the session's, `blocks` message
    number, block, and step of birth; `known` counts messages already stored, `other_lines` are the
    lines of those that are other ones now, `tokens_left` counts tokens that left the recorded
    context.
    """

    def __init__(self, session: Session, *, live: bool = False) -> None:
        self.session = session
        self.live = live
        self.run = recorded_run(session)
        self.fresh: list[Taken] = []
        self.messages: list[tuple[Any, ...]] = []
        self.blocks: list[tuple[int, PreparedBlock, int]] = []
        self.new_calls: list[ModelCall] = []
        self.changed_calls: dict[str, ModelCall] = {}
        self.revised: RecordedRun | None = None
        self.known = 0
        self.other_lines: list[int] = []
        self.tokens_left = 0
        self._steps_before = session.step_count
        self._calls: dict[str, ModelCall] = {}
        self._last_call = ""

    @property
    def changed(self) -> bool:
        """Whether anything new was processed."""
        left = self.revised is not None and bool(self.revised.changes)
        return left or any((self.fresh, self.new_calls, self.changed_calls))

    @property
    def calls(self) -> list[ModelCall]:
        """New calls, and calls with new information."""
        return [*self.new_calls, *self.changed_calls.values()]

    @property
    def reopened(self) -> int | None:
        """The lowest existing step that changed; None if none did."""
        late = [born for _, _, born in self.blocks if born <= self._steps_before]
        return min([*late, *(call.step for call in self.changed_calls.values())], default=None)

    @property
    def recorded(self) -> RecordedRun:
        """Changes of the recorded context other than additions; rarely needed."""
        if self.revised is None:
            self.revised = RecordedRun(self.session, self.run, self._stands())
        return self.revised

    def _stands(self) -> list[Stand]:
        first = self.session.block_count - len(self.blocks)
        messages = {one.seq: one.message.record for one in self.fresh}
        return [
            Stand.of(place, seq, messages[seq], block, born)
            for place, (seq, block, born) in enumerate(self.blocks, first)
        ]

    # Processing

    def take(
        self,
        incoming: Sequence[records.Record],
        prepared: Mapping[int, PreparedMessage],
        known: KnownMessages | None = None,
    ) -> None:
        """Number every record that is not stored yet; `known` defaults to recognition as for
        imports.

        Messages are recognized by key, others by the longest prefix of equal digests; a history
        that diverges after a known prefix is recorded as a rewind, or as a compaction if it goes on
        with a summary.
        """
        known = known or as_imported(self.session, prepared)
        self._recall(incoming, known)
        if known.gone and known.diverges_at is None:
            self._go_back(known.gone)
        for index, record in enumerate(incoming):
            match record:
                case records.Message():
                    self._message_at(index, prepared, known, incoming)
                case records.Call():
                    self._take_call(record)
                case records.Compaction():
                    self.recorded.compact(record)
                case records.Clear():
                    self.recorded.clear(record)
                case records.Rewind():
                    self.recorded.rewind(record)

    def _recall(self, incoming: Iterable[records.Record], known: KnownMessages) -> None:
        """Load the calls and revisions that the batch refers to."""
        if not self.session.message_count and not self.session.step_count:
            return
        calls = {stored.call for stored in known.stored.values()}
        keys = []
        for record in incoming:
            if isinstance(record, records.Message | records.Call):
                calls.add(record.call or "")
            else:
                keys.append(record.key or f"line:{record.line}")
        if keys:
            self.recorded.recall(keys)
        wanted = list(calls - {""})
        rows = _CALLS.rows(wanted, session=self.session.pk) if wanted else ()
        self._calls.update({row.call: row for row in rows})
        self._recall_renamed([one for one in wanted if one not in self._calls])

    def _recall_renamed(self, missing: Iterable[str]) -> None:
        """Calls that got their id after their messages were stored."""
        steps = steps_of(missing)
        for row in self.session.calls.filter(step__in=steps) if steps else ():
            self._calls[f"{UNNAMED}{row.step}"] = row

    def _message_at(
        self,
        index: int,
        prepared: Mapping[int, PreparedMessage],
        known: KnownMessages,
        incoming: Sequence[records.Record],
    ) -> None:
        message = prepared[index]
        stored = known.stored.get(index)
        if stored is not None:
            self.known += 1
            if not message.has_digest(stored.digest):
                self.other_lines.append(message.record.line)
            self._last_call = stored.call or self._last_call
            return
        if index == known.diverges_at:
            self._diverge(message, known.gone, self._compaction(index, incoming, prepared, known))
        # The last message, or one with usage, is new even if it says the same again.
        goes_on = any(isinstance(one, records.Message) for one in incoming[index + 1 : index + 2])
        repeats = self.live and goes_on and known.left[message.digest] > 0
        known.left[message.digest] -= repeats
        self.take_message(message, taken=known.taken, repeats=repeats)

    def _compaction(
        self,
        index: int,
        incoming: Sequence[records.Record],
        prepared: Mapping[int, PreparedMessage],
        known: KnownMessages,
    ) -> Trigger | None:
        """Why the agent compacted, if its history diverges by a summary that is new."""
        at = summary_from(index, incoming)
        if at is None or not known.gone:
            return None
        between = {"seq__gte": min(known.gone), "seq__lte": max(known.gone)}
        again = self.session.messages.filter(digest=prepared[at].digest, **between)
        return None if again.exists() else trigger_of(at, incoming)

    def _diverge(
        self, message: PreparedMessage, gone: set[int], compaction: Trigger | None
    ) -> None:
        # A live agent may rewind twice in the same way; a log is imported repeatedly.
        key = self._next_rewind if self.live else f"rewind:{message.digest}"
        self.recorded.recall([key])
        if compaction is not None:
            reason = "the agent's history now begins with its summary"
            self.left(compaction, Edit.SUMMARIZED, reason, gone, key)
            return
        reason = "the agent's history diverged from the stored one"
        self.left("rewind", "rewind", reason, gone, key)

    def _go_back(self, gone: set[int]) -> None:
        reason = "the agent's history ends before the stored one"
        self.left("rewind", "rewind", reason, gone, self._next_rewind)

    @property
    def _next_rewind(self) -> str:
        return f"rewind@revision-{self.run.head + 1}"

    def left(self, trigger: str, strategy: str, reason: str, seqs: set[int], key: str) -> None:
        """Remove messages from the recorded context (see `RecordedRun.leave`)."""
        self.tokens_left += self.recorded.leave(trigger, strategy, reason, seqs, key)

    def take_message(
        self, message: PreparedMessage, taken: Container[str] = (), *, repeats: bool = False
    ) -> int:
        """Number a new message, dropping its key if that is `taken`; return its seq.

        One that `repeats` a message that the same batch took back is no turn and no step.
        """
        record, session = message.record, self.session
        call = self._call_of(record, repeats=repeats)
        session.message_count += 1
        if record.human and not repeats:
            session.turn_count += 1
        born = (call.step if call else session.step_count) + 1
        self.messages.append(
            (
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
        self.fresh.append(Taken(session.message_count, message, message.blocks))
        if record.at is not None:
            session.started_at = min(session.started_at or record.at, record.at)
            session.ended_at = max(session.ended_at or record.at, record.at)
        self._take_blocks(self.fresh[-1], born)
        return session.message_count

    def _call_of(self, record: records.Message, *, repeats: bool = False) -> ModelCall | None:
        if record.call:
            call = self._call(record.call, record.at)
        elif self.live and record.role == "assistant" and record.kind != "memory" and not repeats:
            call = self._call(f"{UNNAMED}{self.session.step_count + 1}", record.at)
        else:
            return None
        self._last_call = call.call
        return call

    def _take_blocks(self, taken: Taken, born: int) -> None:
        session, record = self.session, taken.message.record
        for block in taken.blocks:
            if self.revised is not None:
                place = session.block_count
                self.revised.take_block(Stand.of(place, taken.seq, record, block, born))
            session.block_count += 1
            session.tool_call_count += block.type == "tool_use"
            session.error_count += block.error
            self.blocks.append((taken.seq, block, born))

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
        self.new_calls.append(made)
        return made

    def _take_call(self, record: records.Call) -> None:
        named = record.call or self._last_call
        if not named:
            return
        call = self._call(named, record.at, record.model)
        if update_call(call, record) and call.pk is not None:
            self.changed_calls[call.call] = call
