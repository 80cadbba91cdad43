"""Read a session from a log into engine values without storing it.

Numbers, counts and recorded edits equal those in the store: `Numbering` and `RecordedRun` write the
same data as rows, and a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compaction import tokens
from compaction.context import edits, wire
from compaction.context.blocks import Block
from compaction.context.session import Call, Usage
from compaction.context.session import Session as SessionValue
from compaction.policies.presets import PRESETS
from compaction.prices import prices
from compaction.simulation.recording import Recording
from compaction.simulation.simulate import Run as RunValue
from compaction.token_ratio import counting_for
from sessions.actions.record.measure import least_gap
from sessions.actions.record.prepare import Preparation, PreparedMessage
from sessions.actions.record.recorded import CLEARED, STAYS
from sessions.importers import records
from sessions.models.record.lived import recorded_steps
from sessions.models.record.values import block_id

Leaves = Callable[[str, str | None], bool]
"""Whether a block leaves the context, by its kind and the key of its message."""


def recording_of_log(found: records.Session) -> Recording | None:
    """Read a log's session completely; None without a model call."""
    reading = _Reading()
    prepared = Preparation(tokens.counted).messages(found.records)
    for index, record in enumerate(found.records):
        reading.take(record, prepared.get(index))
    if not reading.calls:
        return None
    calls = tuple(
        Call(step, call.model[:120], call.at, call.usage, call.settings[:60], call.client[:60])
        for step, call in enumerate(reading.calls.values(), start=1)
    )
    model = found.model[:120] or next((c.model for c in reversed(calls) if c.model), "")
    window = found.window or prices.window(model) or prices.UNKNOWN_WINDOW
    blocks = tuple(one.block for one in reading.entries if one.opened_by is None)
    value = SessionValue(
        tuple(b for b in blocks if b.message not in reading.summaries), calls, model, window
    )
    counting = counting_for(value, {block.id: block.tokens for block in blocks})
    return _scaled(reading, value, counting.permille)


def _scaled(reading: _Reading, value: SessionValue, permille: int) -> Recording:
    """Scale everything to the session's counting and infer the hidden part of each prompt."""

    def scaled(block: Block) -> Block:
        return replace(block, tokens=(block.tokens * permille + 500) // 1000)

    entries = tuple(
        replace(entry, block=scaled(entry.block))
        for entry in sorted(reading.entries, key=lambda one: (one.block.position, one.from_step))
    )
    revisions = tuple(reading.revisions)
    numbers = {revision.step: revision.number for revision in revisions}
    steps = recorded_steps(entries, value.calls, numbers)
    seen = {step.step: step.total for step in steps}
    prompts = {
        call.step: call.usage.opening.prompt for call in value.calls if call.usage is not None
    }
    compacted = [revision.step for revision in revisions if revision.trigger != "clear"]
    hidden = least_gap(compacted, prompts, seen)
    value = replace(value, blocks=tuple(map(scaled, value.blocks)), hidden=hidden)
    lived = RunValue(PRESETS["passthrough"], steps, entries, revisions, (), hidden)
    return Recording(value, lived, permille)


@dataclass(slots=True)
class _Called:
    """What is known of a model call."""

    model: str = ""
    at: int | None = None
    usage: Usage | None = None
    settings: str = ""
    client: str = ""


@dataclass(slots=True)
class _Reading:
    """A session being read: calls by id in order of their steps, all entries, current entries with
    the key of their message, and the messages of summaries."""

    calls: dict[str, _Called] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    entries: list[edits.Entry] = field(default_factory=list)
    standing: dict[int, tuple[edits.Entry, str | None]] = field(default_factory=dict)
    revisions: list[edits.Revision] = field(default_factory=list)
    summaries: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    message: int = 0
    position: int = 0
    turn: int = 0
    last_call: str = ""
    awaits_summary: bool = False

    def take(self, record: records.Record, prepared: PreparedMessage | None) -> None:
        match record:
            case records.Message():
                assert prepared is not None
                self._message(record, prepared)
            case records.Call():
                self._call_record(record)
            case records.Compaction():
                kept = set(record.keep)
                if self._begin(record.trigger, record.key or f"line:{record.line}"):
                    self._end_all(lambda kind, key: kind not in STAYS and key not in kept)
                    self.awaits_summary = True
            case records.Clear():
                if self._begin("clear", record.key or f"line:{record.line}"):
                    self._clear(set(record.tool_calls))
            case records.Rewind():
                dropped = set(record.drop)
                if self._begin("rewind", record.key or f"line:{record.line}"):
                    self._end_all(lambda _, key: key in dropped)

    def _call(self, name: str) -> _Called:
        if name not in self.calls:
            self.calls[name] = _Called()
            self.steps[name] = len(self.calls)
        return self.calls[name]

    def _call_record(self, record: records.Call) -> None:
        name = record.call or self.last_call
        if not name:
            return
        call = self._call(name)
        call.model = record.model or call.model
        call.at = call.at if call.at is not None else record.at
        call.usage = record.usage if record.usage is not None else call.usage
        call.settings = record.settings or call.settings
        call.client = record.client or call.client

    def _message(self, record: records.Message, prepared: PreparedMessage) -> None:
        step = len(self.calls)
        if record.call:
            call = self._call(record.call)
            call.at = call.at if call.at is not None else record.at
            step = self.steps[record.call]
            self.last_call = record.call
        self.message += 1
        self.turn += record.human
        for index, (made, source) in enumerate(zip(prepared.blocks, record.blocks, strict=True)):
            block = Block(
                id=block_id(self.message, index),
                position=self.position,
                message=self.message,
                born=step + 1,
                turn=self.turn,
                role=record.role,
                type=made.type,  # type: ignore[arg-type]
                kind=made.kind,
                tokens=made.tokens,
                chars=made.chars,
                sha=made.sha,
                text=wire.text_of(source),
                call=record.call or None,
                tool_call=made.tool_call or None,
                tool=made.tool or None,
                file=made.file,
                error=made.error,
            )
            if made.kind == "summary" and self.awaits_summary:
                self.summaries.add(self.message)
                self.awaits_summary = False
            entry = edits.Entry(block, block.born)
            self.entries.append(entry)
            self.standing[self.position] = entry, record.key
            self.position += 1

    def _begin(self, trigger: str, key: str) -> bool:
        if key in self.keys:
            return False
        self.keys.add(key)
        number, step = len(self.revisions) + 1, len(self.calls) + 1
        self.revisions.append(
            edits.Revision(number, step, trigger, (), 0, 0)  # type: ignore[arg-type]
        )
        return True

    def _end(self, entry: edits.Entry) -> None:
        revision = self.revisions[-1]
        entry.from_step = min(entry.from_step, revision.step)
        entry.to_step, entry.closed_by = revision.step, revision.number

    def _end_all(self, leaves: Leaves) -> None:
        for position, (entry, key) in list(self.standing.items()):
            if leaves(entry.block.kind, key):
                self._end(entry)
                del self.standing[position]

    def _clear(self, wanted: set[str]) -> None:
        for position, (entry, key) in list(self.standing.items()):
            block = entry.block
            if block.type != "tool_result" or block.replaces or block.tool_call not in wanted:
                continue
            self._end(entry)
            stub = replace(
                block, id=f"p{block.id}", tokens=len(CLEARED) // 4, text="", replaces=block.id
            )
            step, number = self.revisions[-1].step, self.revisions[-1].number
            made = edits.Entry(stub, step, opened_by=number)
            self.entries.append(made)
            self.standing[position] = made, key
