"""What a recorded call was billed, with every request that its response took."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compaction.context.session import Call, Usage
from compaction.prices.prices import Price, nanos

PriceOf = Callable[[str, int | None], Price | None]


def requests_of(call: Call) -> Iterator[tuple[str, Usage]]:
    """Each request behind a call's response: its model and its usage."""
    if call.usage is None:
        return
    if not call.usage.iterations:
        yield call.model, call.usage
    for one in call.usage.iterations:
        yield one.model or call.model, one.usage


def cost_of(call: Call, price_of: PriceOf) -> int | None:
    """The nano-dollars of a call, each request at its own model's price.

    None if the call reported no usage, or if a model has no price.
    """
    if call.usage is None:
        return None
    total = 0
    for model, usage in requests_of(call):
        price = price_of(model, call.at)
        if price is None:
            return None
        total += nanos(usage, price)
    return total
