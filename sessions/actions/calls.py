"""Model calls of a session: what they are named, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable

from compaction import wire
from sessions.importers import records
from sessions.models import ModelCall

UNNAMED = "step-"
"""Beginning of the id that a live call gets where its agent gives none; the step follows."""


def unnamed(call: ModelCall) -> bool:
    """Whether we gave a call its id, as the agent did not."""
    return call.call == f"{UNNAMED}{call.step}"


def steps_of(names: Iterable[str]) -> list[int]:
    """The steps of the calls among these that we gave their ids."""
    numbers = (name.removeprefix(UNNAMED) for name in names if name.startswith(UNNAMED))
    return [int(n) for n in numbers if n.isascii() and n.isdecimal() and len(n) < 10]


def told(call: ModelCall, record: records.Call) -> bool:
    """Take in what a record says of a call; whether that was news."""
    before = _facts(call)
    call.model = record.model[:120] or call.model
    call.at = call.at if call.at is not None else record.at
    call.stop_reason = record.stop_reason[:60] or call.stop_reason
    call.context = record.context or call.context
    call.settings = record.settings[:60] or call.settings
    call.client = record.client[:60] or call.client
    if record.usage is not None:
        call.fresh = record.usage.fresh
        call.cache_read = record.usage.cache_read
        call.cache_write_5m = record.usage.cache_write_5m
        call.cache_write_1h = record.usage.cache_write_1h
        call.output = record.usage.output
        call.reasoning = record.usage.reasoning
        call.reconciles = record.reconciles
        call.usage_raw = wire.encode({"raw": record.usage_raw}).decode("utf-8", "replace")
    return _facts(call) != before


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
        call.context,
        call.settings,
        call.client,
    )
