"""Read-backs charged: what a run costs if the agent reads again whatever it needs and lacks."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.cache.uses import CacheUse
from compaction.context.session import Usage
from compaction.facts.recall import READING_STANDS
from compaction.prices.prices import Price, micros, nanos

ASKED = 100
"""Output tokens of a call that reads a text back (our assumption)."""


def charged(uses: Sequence[CacheUse], readings: Sequence[tuple[int, int]], price: Price) -> int:
    """Return the micro-dollars that read-backs add to a run.

    `readings` are (step, tokens) of the texts needed (`Recall.readings`). Each such step has one
    more call, which reads the step's prompt from the cache and asks for all of them; what they hold
    is written once and then read at `READING_STANDS` steps.
    """
    by_step = {use.step: use for use in uses}
    total = 0
    for step, tokens in readings:
        use = by_step.get(step)
        if use is None:
            continue
        total += nanos(Usage(cache_read=use.prompt, output=ASKED), price)
        rates = price.at(use.prompt)
        total += tokens * (rates.cache_write_5m + READING_STANDS * rates.cache_read)
    return micros(total)
