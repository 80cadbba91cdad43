"""Conversion of model calls to engine values: their usage, times and cache TTL."""

from __future__ import annotations

from compaction.cache.simulator import TTL
from compaction.context import session as recorded
from compaction.context.iterations import unpacked
from compaction.prices import prices
from compaction.prices.billed import cost_of
from sessions.models.record.messages import ModelCall
from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_int, given_uuid


def calls_of(session: Session) -> tuple[recorded.Call, ...]:
    """The session's model calls, by step."""
    return tuple(call_of(call) for call in session.calls.order_by("step"))


def call_of(call: ModelCall) -> recorded.Call:
    """A call as a value."""
    return recorded.Call(
        call.step,
        call.model,
        call.at,
        usage_of(call),
        call.settings,
        call.client,
        call.dropped or 0,
    )


def cost_of_call(call: ModelCall) -> int | None:
    """Micro-dollars of a call by its usage; None without usage or price."""
    nano = cost_of(call_of(call), prices.price)
    return None if nano is None else prices.micros(nano)


def begun_before(session: Session, step: int) -> int | None:
    """Start time of the last call before a step (ms since the epoch); None if unknown."""
    row = _BEGUN.first(session=session.pk, step=step)
    return None if row is None else row[0]


_BEGUN = Statement(
    lambda: (
        ModelCall.objects.filter(
            session_id=given_uuid("session"), step__lt=given_int("step"), at__isnull=False
        )
        .order_by("-step")
        .values_list("at")[:1]
    )
)


LATELY = 50
"""Number of recent calls used to determine the requested cache TTL (our choice)."""


def asked_of(session: Session) -> tuple[int | None, TTL]:
    """Start time of the first call (ms since the epoch; None if unknown), and the TTL that most
    recent cache writes requested. Constant work, however long the session is."""
    first = _FIRST_AT.first(session=session.pk)
    written = _WRITTEN.rows(session=session.pk)
    balance = sum((hour or 0) - (five or 0) for five, hour in written)
    return first[0] if first else None, "1h" if balance > 0 else "5m"


_FIRST_AT = Statement(
    lambda: (
        ModelCall.objects.filter(session_id=given_uuid("session"))
        .order_by("step")
        .values_list("at")[:1]
    )
)
_WRITTEN = Statement(
    lambda: (
        ModelCall.objects.filter(session_id=given_uuid("session"))
        .exclude(uncached=None)
        .order_by("-step")
        .values_list("cache_write_5m", "cache_write_1h")[:LATELY]
    )
)


def usage_of(call: ModelCall) -> recorded.Usage | None:
    """Reported usage of a call; None if the provider reported none."""
    if call.uncached is None:
        return None
    return recorded.Usage(
        uncached=call.uncached,
        cache_read=call.cache_read or 0,
        cache_write_5m=call.cache_write_5m or 0,
        cache_write_1h=call.cache_write_1h or 0,
        output=call.output or 0,
        reasoning=call.reasoning or 0,
        iterations=unpacked(call.iterations),
    )
