"""What the cache really did: breaks read from the usage that a provider reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from compaction.cache.forecast import (
    Forecast,
    Known,
    Moment,
    forecast,
    idle_of,
    is_break,
    lifetime_of,
    observe,
)
from compaction.cache.simulator import Break, CacheUse, priced
from compaction.prices import Price
from compaction.session import Call, Usage

NOTHING_PAID = 1024
"""Tokens that no provider caches by themselves: to pay so few again is no break."""

PriceOf = Callable[[str, int | None], Price | None]


def measured(
    calls: Iterable[tuple[Call, Moment]], price_of: PriceOf | None = None
) -> list[CacheUse]:
    """The use of the cache at every call that reported usage, breaks named."""
    known = Known()
    uses = (follow(known, moment, call, price_of) for call, moment in calls)
    return [use for use in uses if use is not None]


def follow(
    known: Known, moment: Moment, call: Call, price_of: PriceOf | None = None
) -> CacheUse | None:
    """The use of the cache at the next call, its break named; None where it reported no usage.

    A break is a call that read less than the call before had left, by over 2,000 tokens and over 2
    %, and paid for some of it again (`rewritten`). Its cause is the one that was to be foretold
    from what the log shows (`forecast`), without the call's own usage; else unexplained. Until some
    usage shows a read or a write there is no cache to break, and nothing is expected: an automatic
    cache shows itself by its first read. The first call is a cold start, even where it reads what
    another session left. `known` is brought up to this call.
    """
    moment = moment.after(known.passed)
    usage = call.usage
    if usage is None:
        known.passed = moment
        return None
    told = forecast(known, moment)
    use = CacheUse(
        step=call.step,
        basis="measured",
        read=usage.cache_read,
        write_5m=usage.cache_write_5m,
        write_1h=usage.cache_write_1h,
        fresh=usage.fresh,
        output=usage.output,
        expected=_expected(known, moment, usage),
    )
    broken = _break(known, moment, usage, told)
    observe(known, moment, usage)
    return priced(use, broken, price_of(call.model, call.at) if price_of else None)


def broke(known: Known, usage: Usage) -> bool:
    """Whether a call read less than was left, whatever it paid again."""
    left = known.left
    return left is not None and _shows(known, usage) and is_break(left, usage.cache_read)


def _shows(known: Known, usage: Usage) -> bool:
    return known.writes or known.reads or usage.cache_read > 0


def _expected(known: Known, moment: Moment, usage: Usage) -> int | None:
    """The plain expectation: all that was left is read, unless its time ran out."""
    if known.left is None or not _shows(known, usage):
        return None
    late = idle_of(known, moment) > lifetime_of(known, moment)
    return 0 if late else min(known.left, usage.prompt)


def _break(known: Known, moment: Moment, usage: Usage, told: Forecast) -> Break | None:
    if known.left is None:
        return Break("cold_start")
    rewritten = min(known.left, usage.prompt) - usage.cache_read
    if not broke(known, usage) or rewritten <= NOTHING_PAID:
        return None
    late = told.cause == "lifetime"
    revision = told.revision
    if told.cause is None and told.suspect is not None:
        revision = told.suspect.revision
    return Break(
        told.named,
        rewritten,
        idle=idle_of(known, moment) if late else None,
        lifetime=lifetime_of(known, moment) if late else None,
        revision=revision,
        guess=told.guess,
    )
