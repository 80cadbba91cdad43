"""Cache use and breaks read from the usage that a provider reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compaction.cache.forecast import (
    Forecast,
    ForecastState,
    Moment,
    forecast,
    idle_of,
    is_break,
    leave,
    observe,
    ttl_of,
)
from compaction.cache.simulator import priced
from compaction.cache.uses import Break, CacheUse
from compaction.context.session import Call, Usage
from compaction.prices.billed import PriceOf, cost_of
from compaction.prices.prices import micros

NOTHING_PAID = 1024
"""Fewer tokens than any provider caches: paying for so few again is not a break."""


def measured(
    calls: Iterable[tuple[Call, Moment]], price_of: PriceOf | None = None
) -> list[CacheUse]:
    """Return the cache use of every call that reported usage, with its breaks."""
    known = ForecastState()
    uses = (follow(known, moment, call, price_of) for call, moment in calls)
    return [use for use in uses if use is not None]


def follow(
    known: ForecastState, moment: Moment, call: Call, price_of: PriceOf | None = None
) -> CacheUse | None:
    """Return the cache use of the next call and update `known`; None if it reported no usage.

    A break is a call that read less than the call before had left in the cache, by over 2,000
    tokens and over 2 %, and paid for some of it again (`rewritten`). Its cause is the one that
    `forecast` derives from the log without the call's own usage, otherwise unexplained. Until some
    usage shows a read or a write, there is no cache to break and nothing is expected: the first
    read reveals an automatic cache. The first call is a cold start, even if it reads what another
    session cached.
    """
    moment = moment.after(known.passed)
    usage = call.usage
    if usage is None:
        known.passed = moment
        return None
    expected, opening = forecast(known, moment), usage.opening
    use = replace(
        _use(call.step, opening),
        expected=_expected(known, moment, opening),
        forecast=None if known.left is None else min(expected.read, opening.prompt),
    )
    broken = _break(known, moment, opening, expected)
    observe(known, moment, opening)
    found = priced(use, broken, price_of(call.model, call.at) if price_of else None)
    if not usage.iterations:
        return found
    leave(known, usage.closing)
    return _whole(found, call, usage, price_of)


def _use(step: int, usage: Usage) -> CacheUse:
    return CacheUse(
        step=step,
        basis="measured",
        read=usage.cache_read,
        write_5m=usage.cache_write_5m,
        write_1h=usage.cache_write_1h,
        uncached=usage.uncached,
        output=usage.output,
    )


def _whole(found: CacheUse, call: Call, usage: Usage, price_of: PriceOf | None) -> CacheUse:
    """The use of a response that took several requests, from that of its first."""
    more = usage.cache_read - found.read  # what its own earlier requests wrote
    nano = cost_of(call, price_of) if price_of else None
    return replace(
        _use(call.step, usage),
        expected=found.expected,
        forecast=None if found.forecast is None else max(found.forecast + more, 0),
        broken=found.broken,
        confidence=found.confidence,
        cost=None if nano is None else micros(nano),
        opened=found.prompt,
        beside=usage.billed.minus(usage),
    )


def broke(known: ForecastState, usage: Usage) -> bool:
    """Return whether a call read less than was cached, no matter what it paid for again."""
    left = known.left
    return left is not None and _shows(known, usage) and is_break(left, usage.cache_read)


def _shows(known: ForecastState, usage: Usage) -> bool:
    return known.writes or known.reads or usage.cache_read > 0


def _expected(known: ForecastState, moment: Moment, usage: Usage) -> int | None:
    """Return the plain expectation: everything cached is read unless its TTL expired."""
    if known.left is None or not _shows(known, usage):
        return None
    late = idle_of(known, moment) > ttl_of(known, moment)
    return 0 if late else min(known.left, usage.prompt)


def _break(known: ForecastState, moment: Moment, usage: Usage, expected: Forecast) -> Break | None:
    if known.left is None:
        return Break("cold_start")
    rewritten = min(known.left, usage.prompt) - usage.cache_read
    if not broke(known, usage) or rewritten <= NOTHING_PAID:
        return None
    late = expected.named == "ttl"
    revision = expected.revision
    if expected.cause is None and expected.suspect is not None:
        revision = expected.suspect.revision
    return Break(
        expected.named,
        rewritten,
        idle=idle_of(known, moment) if late else None,
        ttl=ttl_of(known, moment) if late else None,
        revision=revision,
        guess=expected.guess,
        cut=expected.cut,
    )
