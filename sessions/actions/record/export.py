"""Export: a session as JSON lines, with secrets masked by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compaction.context import wire
from compaction.redaction.redact import Masker
from sessions.models import Block, Message, ModelCall, Run, Session
from sessions.models.record.model_calls import usage_of
from sessions.models.record.values import contents

AT_ONCE = 200
"""Messages whose contents are in memory at the same time."""

STATED_KINDS = frozenset({"summary", "memory", "system", "tools"})
"""Kinds that cannot be derived from role and blocks."""

Line = dict[str, Any]


def export(session: Session, masker: Masker | None) -> Iterator[Line]:
    """Yield the session line, then messages and model calls in order of steps, then revisions.

    A message line is in the API's format (`id`, `role`, `content`, `call`, `at`, `kind`, `human`),
    plus its `seq`. With a masker every string is masked; its `masked` counts the findings. Raises
    MissingBlob, DamagedBlob.
    """
    convert = _masked(masker) if masker is not None else _as_it_is
    yield convert(_session(session))
    calls = iter(session.calls.order_by("step"))
    call = next(calls, None)
    for message, rows, blocks in _messages(session):
        while call is not None and call.step < message.born:
            yield convert(_call(call))
            call = next(calls, None)
        yield convert(_message(message, rows, blocks))
    while call is not None:
        yield convert(_call(call))
        call = next(calls, None)
    for run in session.runs.exclude(origin=Run.Origin.SIMULATED).order_by("created"):
        for row in run.revisions.order_by("number"):
            yield convert(
                {
                    "type": "revision",
                    "run": run.origin,
                    "number": row.number,
                    "step": row.step,
                    "trigger": row.trigger,
                    "reason": row.reason,
                    "policy": str(row.policy_version) if row.policy_version else None,
                    "tokens_before": row.tokens_before,
                    "tokens_after": row.tokens_after,
                }
            )


def _session(session: Session) -> Line:
    return {
        "type": "session",
        "external_id": session.external_id,
        "agent": session.agent,
        "model": session.model,
        "title": session.title,
        "task": session.task,
        "window": session.window,
        "source": session.source,
        "parent": session.parent_external_id or None,
        "outcome": session.outcome or None,
        "metadata": session.meta,
    }


def _messages(session: Session) -> Iterator[tuple[Message, list[Block], list[Line]]]:
    last = 0
    while batch := list(session.messages.filter(seq__gt=last).order_by("seq")[:AT_ONCE]):
        last = batch[-1].seq
        rows = Block.objects.filter(message__in=batch).order_by("message__seq", "index")
        by_message: dict[int, list[Block]] = {}
        for row in rows:
            by_message.setdefault(row.message_id, []).append(row)
        data = contents(session, [row.sha for row in rows])
        for message in batch:
            found = by_message.get(message.pk, [])
            yield message, found, [wire.decode(data[row.sha]) for row in found]


def _message(message: Message, rows: list[Block], blocks: list[Line]) -> Line:
    kinds = {row.kind for row in rows}
    return {
        "type": "message",
        "seq": message.seq,
        "id": message.key,
        "role": message.role,
        "content": blocks,
        "call": message.call or None,
        "kind": kinds.pop() if len(kinds) == 1 and kinds <= STATED_KINDS else None,
        "human": message.human,
        "at": message.at,
    }


def _call(call: ModelCall) -> Line:
    usage = usage_of(call)
    return {
        "type": "call",
        "call": call.call,
        "step": call.step,
        "model": call.model,
        "at": call.at,
        "usage": None
        if usage is None
        else {
            "uncached": usage.uncached,
            "cache_read": usage.cache_read,
            "cache_write_5m": usage.cache_write_5m,
            "cache_write_1h": usage.cache_write_1h,
            "output": usage.output,
        },
        "cost_microusd": call.cost_microusd,
        "context_id": call.context or None,
        "stop_reason": call.stop_reason or None,
        "settings": call.settings or None,
        "client": call.client or None,
    }


def _as_it_is(line: Line) -> Line:
    return line


def _masked(masker: Masker) -> Callable[[Line], Line]:
    def mask(value: Any) -> Any:
        if isinstance(value, str):
            return masker.mask(value)
        if isinstance(value, list):
            return [mask(item) for item in value]
        if isinstance(value, dict):
            return {masker.mask(key): mask(item) for key, item in value.items()}
        return value

    return mask
