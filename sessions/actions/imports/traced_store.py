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


def stored_calls(session: Session) -> Iterator[TracedCall]:
    """The calls of a session, each with its prompt and answer. Raises MissingBlob, DamagedBlob."""
    ended, group = _ended(session), session.parent_external_id or session.external_id
    opening = opening_of(session)
    said = _said(session)
    of_prompts = [one for one in said if not one.key.startswith("tools-")]
    tools = [one for one in said if one.key.startswith("tools-")]
    for call in session.calls.order_by("step"):
        answer = [one for one in said if one.row.call == call.call]
        made = silent_call(call, group)
        made.said = [
            one.said
            for one in of_prompts
            if one.row.born <= call.step < ended.get(one.row.seq, call.step + 1)
        ]
        made.answer = [one.said for one in answer]
        made.agent = session.agent
        made.line = answer[0].row.line if answer else 0
        made.parent = span_in(opening)
        offered = [one for one in tools if one.row.born <= call.step]
        made.tools = offered[-1].said.blocks[0]["tools"] if offered else []
        if opening == TOOLS:
            made.is_model = False
            made.said = [
                one.said
                for one in of_prompts
                if one.key.startswith(f"{call.call}-") and not one.row.call
            ]
        yield made


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
        held[pk].append(wire.decode(data[sha]))
    made = []
    for row in rows:
        key, role = row.key or "", cast(Role, row.role)
        made.append(_Stored(row, key, TraceMessage(role, held[row.pk], digest_in(key))))
    return made
