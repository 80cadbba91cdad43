"""Stored contexts of traces: to go on from, and as the calls that they were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from django.db.models import QuerySet

from compaction.context import wire
from compaction.context.blocks import Role
from sessions.importers import records
from sessions.importers.reported import Reported
from sessions.importers.traces.said import TraceMessage
from sessions.importers.traces.traced_calls import REPEATS, TracedCall
from sessions.importers.traces.traced_contexts import (
    OPENING,
    TOOLS,
    TracedContext,
    digest_in,
    is_added,
    span_in,
)
from sessions.importers.wire import mapping, sequence
from sessions.models import Edit, Entry, Message, ModelCall, Revision, Run, Session
from sessions.models.record.model_calls import usage_of
from sessions.models.record.values import contents


class StoredContext(TracedContext):
    """A stored context, which is read when something is added to it."""

    def __init__(self, stored: Session) -> None:
        named, parent = stored.external_id, stored.parent_external_id or None
        opening = stored.meta.get(OPENING)
        super().__init__(records.Session(named, parent=parent, meta={OPENING: opening}))
        self.stored = stored
        self._is_read = False

    @property
    def began(self) -> int:
        times = self.stored.calls.order_by("step").values_list("at", flat=True)
        return times.first() or 0

    def take(self, one: TracedCall) -> None:
        if not self._is_read:
            self._is_read = True
            self._read()
        super().take(one)

    def _read(self) -> None:
        times = self.stored.calls.order_by("-step").values_list("at", flat=True)
        self.after = times.first() or 0
        ended = _ended(self.stored)
        listed = _keys(self.stored)
        keys = [key for _, key in listed]
        standing = [key for seq, key in listed if seq not in ended]
        rows = self.stored.blocks.filter(type__in=("tool_use", "tool_result"))
        made = list(rows.order_by("position").values_list("type", "tool_call", "tool"))
        answered = {call for form, call, _ in made if form == "tool_result"}
        asked = [(call, tool) for form, call, tool in made if form == "tool_use"]
        self.resume(
            keys, standing, [{"id": c, "name": t, "answered": c in answered} for c, t in asked]
        )


class Shape(NamedTuple):
    """What tells the records of a session apart: keys of messages with their calls, calls with
    their usage as reported, and keys of rewinds."""

    messages: list[tuple[str | None, str]]
    calls: list[tuple[str, dict[str, Any]]]
    rewinds: list[str | None]

    def begins(self, other: Shape) -> bool:
        """Whether another one has all of this, and perhaps more after it."""
        return (
            other.messages[: len(self.messages)] == self.messages
            and other.calls[: len(self.calls)] == self.calls
            and other.rewinds[: len(self.rewinds)] == self.rewinds
        )


def shape_of(made: list[records.Record]) -> Shape:
    """The shape of records."""
    messages = [(one.key, one.call or "") for one in made if isinstance(one, records.Message)]
    named = (
        one.call for one in made if isinstance(one, records.Message | records.Call) and one.call
    )
    raw = {one.call: mapping(one.usage_raw) for one in made if isinstance(one, records.Call)}
    calls = [(name, raw.get(name, {})) for name in dict.fromkeys(named)]
    return Shape(messages, calls, [one.key for one in made if isinstance(one, records.Rewind)])


def stored_shape(session: Session) -> Shape:
    """The shape of a stored session."""
    return Shape(
        list(session.messages.order_by("seq").values_list("key", "call")),
        [(one.call, reported_of(one)) for one in session.calls.order_by("step")],
        list(_rewinds(session).values_list("key", flat=True)),
    )


def opening_of(session: Session) -> str:
    """What names the context of a session; empty if an earlier release stored it."""
    return str(session.meta.get(OPENING) or "")


def reported_of(call: ModelCall) -> dict[str, Any]:
    """The usage of a stored call as reported, with the spans that repeat it."""
    return mapping(json.loads(call.usage_raw)["raw"]) if call.usage_raw else {}


def repeats_of(call: ModelCall) -> list[str]:
    """The spans that repeat a stored call."""
    return [str(one) for one in sequence(reported_of(call).get(REPEATS))]


def _rewinds(session: Session) -> QuerySet[Revision]:
    revisions = Revision.objects.filter(run__session=session, run__origin=Run.Origin.RECORDED)
    return revisions.order_by("number")


def _keys(session: Session) -> list[tuple[int, str]]:
    rows = session.messages.order_by("seq").values_list("seq", "key")
    return [(seq, key or "") for seq, key in rows]


def _ended(session: Session) -> dict[int, int]:
    """The steps from which messages are no longer in the context, by number."""
    run = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    ended = Entry.objects.filter(run__in=run, closed_by__strategy__in=Edit.LEFT)
    rows = ended.values_list("block__message__seq", "to_step")
    return {seq: step for seq, step in rows if seq is not None and step is not None}


class TraceMoved(Exception):
    """Another import wrote to the group while it was read."""


def stored_calls(session: Session) -> Iterator[TracedCall]:
    """The calls of a session, each with its prompt and answer. Raises TraceMoved, MissingBlob,
    DamagedBlob."""
    group = session.parent_external_id or session.external_id
    opening = opening_of(session)
    for call, prompt in _prompts(session):
        made = silent_call(call, group)
        made.said = [one.said for one in prompt.said]
        made.answer = [one.said for one in prompt.answer]
        made.agent = session.agent
        made.line = prompt.answer[0].row.line if prompt.answer else 0
        made.parent = span_in(opening)
        made.tools = prompt.tools.said.blocks[0]["tools"] if prompt.tools else []
        if opening == TOOLS:
            made.is_model = False
            made.said = [one.said for one in prompt.results]
        yield made


class _Prompt(NamedTuple):
    """What a call was sent, and its tools; its answer; and the results of a tool call."""

    said: list[_Stored]
    tools: _Stored | None
    answer: list[_Stored]
    results: list[_Stored]


def _prompts(session: Session) -> Iterator[tuple[ModelCall, _Prompt]]:
    """The calls with their prompts, by step, in one walk through the messages. Raises as
    `stored_calls`."""
    ended = _ended(session)
    ends = set(ended.values())
    born: dict[int, list[_Stored]] = {}
    answers: dict[str, list[_Stored]] = {}
    for one in _said(session):
        born.setdefault(one.row.born, []).append(one)
        if one.row.call:
            answers.setdefault(one.row.call, []).append(one)
    tools: _Stored | None = None
    standing: list[_Stored] = []
    for call in session.calls.order_by("step"):
        here = born.get(call.step, ())
        tools = next((one for one in reversed(here) if one.key.startswith("tools-")), tools)
        standing += [one for one in here if not one.key.startswith("tools-")]
        if call.step in ends:  # also of answers to the call before
            standing = [one for one in standing if ended.get(one.row.seq) != call.step]
        added = [one for one in here if is_added(one.key)]
        after = (one for one in born.get(call.step + 1, ()) if not one.row.call)
        results = [one for one in after if one.key.startswith(f"{call.call}-")]
        said = added or list(standing)
        yield call, _Prompt(said, tools, answers.get(call.call, []), results)


def silent_call(call: ModelCall, group: str) -> TracedCall:
    """A stored call without its messages."""
    raw = reported_of(call)
    return TracedCall(
        id=call.call,
        group=group,
        said=[],
        answer=[],
        at=call.at,
        model=call.model,
        usage=Reported(usage_of(call), call.reconciles),
        usage_raw={name: value for name, value in raw.items() if name != REPEATS} or None,
        stop_reason=call.stop_reason,
        response=call.response or "",
        repeats=repeats_of(call),
    )


class _Stored(NamedTuple):
    row: Message
    key: str
    said: TraceMessage


def _said(session: Session) -> list[_Stored]:
    rows = list(session.messages.order_by("seq"))
    blocks = list(session.blocks.order_by("position").values_list("message", "sha"))
    data = contents(session, [sha for _, sha in blocks])
    held: dict[int, list[wire.WireBlock]] = {row.pk: [] for row in rows}
    for pk, sha in blocks:
        if pk not in held:
            raise TraceMoved
        held[pk].append(wire.decode(data[sha]))
    made = []
    for row in rows:
        key, role = row.key or "", cast(Role, row.role)
        made.append(_Stored(row, key, TraceMessage(role, held[row.pk], digest_in(key))))
    return made
