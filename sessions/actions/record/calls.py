"""Rows of model calls: ids for calls without one, and what later records say of them."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.context import wire
from compaction.context.iterations import packed
from sessions.importers import records
from sessions.models import ModelCall

UNNAMED = "step-"
"""Prefix of ids for live calls without one; the step follows."""


def unnamed(call: ModelCall) -> bool:
    """Whether we generated the call's id."""
    return call.call == f"{UNNAMED}{call.step}"


def steps_of(names: Iterable[str]) -> list[int]:
    """The steps of calls with generated ids."""
    numbers = (name.removeprefix(UNNAMED) for name in names if name.startswith(UNNAMED))
    return [int(n) for n in numbers if n.isascii() and n.isdecimal() and len(n) < 10]


def update_call(call: ModelCall, record: records.Call) -> bool:
    """Update a call from a record; return whether it changed."""
    before = _facts(call)
    call.model = record.model[:120] or call.model
    call.at = call.at if call.at is not None else record.at
    call.stop_reason = record.stop_reason[:60] or call.stop_reason
    call.context = record.context or call.context
    call.settings = record.settings[:60] or call.settings
    call.client = record.client[:60] or call.client
    call.response = record.response or call.response
    call.dropped = record.dropped if call.dropped is None else call.dropped
    if record.usage is not None:
        call.uncached = record.usage.uncached
        call.cache_read = record.usage.cache_read
        call.cache_write_5m = record.usage.cache_write_5m
        call.cache_write_1h = record.usage.cache_write_1h
        call.output = record.usage.output
        call.reasoning = record.usage.reasoning
        call.iterations = packed(record.usage)
        call.reconciles = record.reconciles
    if record.usage is not None or record.usage_raw is not None:
        call.usage_raw = wire.encode({"raw": record.usage_raw}).decode("utf-8", "replace")
    return _facts(call) != before


def _facts(call: ModelCall) -> tuple[object, ...]:
    return (
        call.model,
        call.at,
        call.uncached,
        call.cache_read,
        call.cache_write_5m,
        call.cache_write_1h,
        call.output,
        call.iterations,
        call.stop_reason,
        call.context,
        call.settings,
        call.client,
        call.response,
        call.dropped,
    )
