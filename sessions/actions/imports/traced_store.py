"""Stored contexts of traces as the calls that they were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from django.db.models import QuerySet

from compaction.context import wire
from compaction.context.blocks import Role
from sessions.actions.imports.traced_cut import (
    START,
    MessageBlocks,
    StoredBlocks,
    TraceCut,
    TraceMoved,
    blocks_by_message,
    ended_steps,
    opening_of,
    standing_rows,
    tools_rows,
)
from sessions.importers import records
from sessions.importers.reported import Reported
from sessions.importers.traces.said import TraceMessage
from sessions.importers.traces.traced_calls import REPEATS, TracedCall
from sessions.importers.traces.traced_contexts import (
    TOOLS,
    digest_in,
    is_added,
    is_tools,
    span_in,
)
from sessions.importers.wire import mapping, sequence
from sessions.models import Message, ModelCall, Revision, Run, Session
from sessions.models.record.model_calls import usage_of


class Shape(NamedTuple):
    """What tells the records of a session apart: keys of messages with their calls, calls with
    their usage as reported, and keys of rewinds."""

    messages: list[tuple[str | None, str]]
    calls: list[tuple[str, dict[str, Any]]]
    rewinds: list[str | None]

    @property
    def is_empty(self) -> bool:
        """Whether there are no records."""
        return not any(self)

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


def stored_shape(session: Session, cut: TraceCut = START) -> Shape:
    """The shape of a stored session from a cut on."""
    messages = session.messages.filter(seq__gte=cut.seq).order_by("seq")
    calls = session.calls.filter(step__gte=cut.step).order_by("step")
    rewinds = _rewinds(session).filter(step__gte=cut.step)
    return Shape(
        list(messages.values_list("key", "call")),
        [(one.call, reported_of(one)) for one in calls],
        list(rewinds.values_list("key", flat=True)),
    )


def reported_of(call: ModelCall) -> dict[str, Any]:
    """The usage of a stored call as reported, with the spans that repeat it."""
    return mapping(json.loads(call.usage_raw)["raw"]) if call.usage_raw else {}


def repeats_of(call: ModelCall) -> list[str]:
    """The spans that repeat a stored call."""
    return [str(one) for one in sequence(reported_of(call).get(REPEATS))]


def _rewinds(session: Session) -> QuerySet[Revision]:
    revisions = Revision.objects.filter(run__session=session, run__origin=Run.Origin.RECORDED)
    return revisions.order_by("number")


def stored_calls(session: Session, cut: TraceCut = START) -> Iterator[TracedCall]:
    """The calls of a session from a cut on, each with its prompt and answer. Raises TraceMoved,
    MissingBlob, DamagedBlob."""
    group = session.parent_external_id or session.external_id
    opening = opening_of(session)
    for call, prompt in _prompts(session, cut):
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


def _prompts(session: Session, cut: TraceCut) -> Iterator[tuple[ModelCall, _Prompt]]:
    """The calls with their prompts, by step, in one walk through the messages. Raises as
    `stored_calls`."""
    ended = ended_steps(session, cut)
    ends = set(ended.values())
    born: dict[int, list[_Stored]] = {}
    answers: dict[str, list[_Stored]] = {}
    for one in _said(session, cut):
        born.setdefault(one.row.born, []).append(one)
        if one.row.call:
            answers.setdefault(one.row.call, []).append(one)
    standing, tools = _before(session, cut)
    for call in session.calls.filter(step__gte=cut.step).order_by("step"):
        here = born.get(call.step, ())
        tools = next((one for one in reversed(here) if is_tools(one.key)), tools)
        standing += [one for one in here if not is_tools(one.key)]
        if call.step in ends:  # also of answers to the call before
            standing = [one for one in standing if ended.get(one.row.seq) != call.step]
        added = [one for one in here if is_added(one.key)]
        after = (one for one in born.get(call.step + 1, ()) if not one.row.call)
        results = [one for one in after if one.key.startswith(f"{call.call}-")]
        said = added or list(standing)
        yield call, _Prompt(said, tools, answers.get(call.call, []), results)


def _before(session: Session, cut: TraceCut) -> tuple[list[_Stored], _Stored | None]:
    """What a cut leaves in the context, and the tools, without reading what they say."""
    if cut.seq == 1:
        return [], None
    later = StoredBlocks(session)
    rows = standing_rows(session, cut)
    standing = [_stored(row, MessageBlocks(later, row.pk)) for row in rows]
    tools = tools_rows(session, cut).first()
    return standing, None if tools is None else _stored(tools, MessageBlocks(later, tools.pk))


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


def _said(session: Session, cut: TraceCut) -> list[_Stored]:
    rows = list(session.messages.filter(seq__gte=cut.seq).order_by("seq"))
    blocks = session.blocks.filter(position__gte=cut.position).order_by("position")
    held = blocks_by_message(session, blocks)
    if not held.keys() <= {row.pk for row in rows}:
        raise TraceMoved
    return [_stored(row, held.get(row.pk, [])) for row in rows]


def _stored(row: Message, blocks: Sequence[wire.WireBlock]) -> _Stored:
    key = row.key or ""
    return _Stored(row, key, TraceMessage(cast(Role, row.role), blocks, digest_in(key)))
