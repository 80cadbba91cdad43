"""The cost of an entry over its life: it is sent with every prompt while in context."""

from __future__ import annotations

from typing import Any

import msgspec

from compaction.prices import prices
from sessions.models import Run, Session
from sessions.models.record import tail


class _Steps(msgspec.Struct):
    at: list[int | None]
    prompt: list[int | None]
    output: list[int | None]
    cost: list[int | None]
    model: list[int]


class _Columns(msgspec.Struct):
    steps: _Steps
    models: list[str]


def cost_in_context(
    session: Session, run: Run, tokens: int, start: int, end: int | None
) -> dict[str, Any]:
    """Number of steps in context [start, end), tokens sent, and the share of those prompts' cost.

    A prompt's cost is split by tokens, whether read from the cache or not; micro-dollars, None
    unless all of these steps have a price.
    """
    last = session.step_count if end is None else min(end - 1, session.step_count)
    count = max(last - start + 1, 0)
    return {
        "steps": count,
        "tokens": tokens * count,
        "cost_microusd": _cost(run, tokens, start, last) if count else None,
    }


def _cost(run: Run, tokens: int, start: int, last: int) -> int | None:
    columns = msgspec.json.decode(tail.figures_json(tail.stored(run)), type=_Columns)
    steps, total = columns.steps, 0.0
    if len(steps.model) < last:
        return None  # the newest steps are not measured yet
    for i in range(start - 1, last):
        prompt, cost, output = steps.prompt[i], steps.cost[i], steps.output[i]
        price = prices.price(columns.models[steps.model[i]], steps.at[i])
        if not prompt or cost is None or price is None:
            return None
        # Nano-dollars to micro-dollars.
        spent = cost - (output or 0) * price.at(prompt).output / 1000
        total += spent * min(tokens / prompt, 1)
    return round(total)
