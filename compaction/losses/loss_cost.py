"""What a loss cost: the model calls made because text had left the context, and what came again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compaction.context.session import Call
from compaction.losses.repairs import Repair
from compaction.prices.prices import Price, micros


@dataclass(frozen=True, slots=True)
class PaidStep:
    """The model call of a step in micro-dollars: what it cost, None if unknown, and what of that
    was for a cache break. Of a token of its prompt, in nano-dollars: `new` if it arrived since the
    call before, `held` if that call had it too."""

    cost: int | None
    cache_break: int = 0
    new: int = 0
    held: int = 0

    @property
    def unbroken(self) -> int:
        """The micro-dollars without the cache break; 0 if unknown."""
        return max((self.cost or 0) - self.cache_break, 0)


@dataclass(frozen=True, slots=True)
class CameAgain:
    """The result of a repair's call at a step, estimated in tokens: the prompts of the steps
    [since, until) held it; until the end if None."""

    step: int
    tokens: int
    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class LossCost:
    """What a loss cost in micro-dollars, `at_least` if some calls have no price.

    `steps` are those of repairs, each once, and `calls` what their model calls cost without their
    cache breaks; None if no call has a price. `tokens` came again, and `carried` is what the
    prompts of `carriers` other calls paid for them.
    """

    steps: tuple[int, ...]
    calls: int | None
    at_least: bool = False
    tokens: int = 0
    carried: int = 0
    carriers: int = 0

    @property
    def microusd(self) -> int | None:
        """The whole; None if unknown."""
        return None if self.calls is None else self.calls + self.carried


def paid_step(call: Call, price: Price | None, cost: int | None, cache_break: int) -> PaidStep:
    """Return what a call paid: what is new in its prompt at the mean price of what it wrote to the
    cache and sent uncached; what it held already at that of a cache read, if it read any or would
    have without the break."""
    usage = call.usage
    if usage is None or price is None or cost is None:
        return PaidStep(cost, cache_break)
    rates = price.at(usage.prompt)
    fresh = usage.uncached + usage.cache_write
    paid = (
        usage.uncached * rates.input
        + usage.cache_write_5m * rates.cache_write_5m
        + usage.cache_write_1h * rates.cache_write_1h
    )
    new = paid // fresh if fresh else rates.input
    cached = usage.cache_read > 0 or cache_break > 0
    return PaidStep(cost, cache_break, new, rates.cache_read if cached else new)


def came_again(found: Iterable[Repair]) -> Iterator[CameAgain]:
    """The results of repairs: a correction has none."""
    for one in found:
        if one.result is not None:
            entry = one.result
            yield CameAgain(one.step, entry.block.tokens, entry.block.born, entry.to_step)


def loss_cost(
    steps: Iterable[int], paid: Mapping[int, PaidStep], again: Iterable[CameAgain] = ()
) -> LossCost:
    """Return what the repairs at these steps cost: the only price of a loss.

    `paid` are model calls by step, `again` results of repairs: those at other steps are
    left out. Of two sets of steps where one holds the other, the larger never costs less: a call
    that is a repair counts whole and carries nothing, and no other call carries more than it cost.
    Linear in the steps from the first repair.
    """
    of_repairs = set(steps)
    found = sorted(of_repairs)
    known = [one.unbroken for one in map(paid.get, found) if one and one.cost is not None]
    calls = sum(known) if known or not found else None
    results = [one for one in again if one.step in of_repairs]
    load = _carried(results, paid, of_repairs)
    return LossCost(
        tuple(found),
        calls,
        len(known) < len(found) or load.unknown,
        sum(one.tokens for one in results),
        micros(load.nanos),
        load.calls,
    )


class _Load(NamedTuple):
    """Nano-dollars that calls paid for what came again, how many did, and whether some have no
    price."""

    nanos: int
    calls: int
    unknown: bool


def _carried(
    results: Collection[CameAgain], paid: Mapping[int, PaidStep], repairs: Collection[int]
) -> _Load:
    new, change = Counter[int](), Counter[int]()
    for one in results:
        new[one.since] += one.tokens
        change[one.since + 1] += one.tokens
        if one.until is not None:
            change[max(one.until, one.since + 1)] -= one.tokens
    nanos = calls = held = 0
    unknown = False
    for step in range(min(new, default=1), max(paid, default=0) + 1):
        held += change[step]
        if step in repairs or not (new[step] or held):
            continue
        call = paid.get(step)
        if call is None or call.cost is None:
            unknown = True
            continue
        nanos += min(new[step] * call.new + held * call.held, call.unbroken * 1000)
        calls += 1
    return _Load(nanos, calls, unknown)
