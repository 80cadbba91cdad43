"""What one entry cost over its life: sent with every prompt while it stood."""

from __future__ import annotations

from typing import Any

import msgspec

from compaction import prices
from sessions.models import Run, Session, tail


class _Steps(msgspec.Struct):
    at: list[int | None]
    prompt: list[int | None]
    output: list[int | None]
    cost: list[int | None]
    model: list[int]


class _Columns(msgspec.Struct):
    steps: _Steps
    models: list[str]


def lifetime(
    session: Session, run: Run, tokens: int, start: int, end: int | None
) -> dict[str, Any]:
    """Steps an entry stood [start, end), tokens sent for it, and its share of those prompts' cost.

    A prompt's cost is shared out by tokens, whatever of it was read from the cache; micro-dollars,
    None unless every one of these steps has a price.
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
        return None  # the newest are not measured yet
    for i in range(start - 1, last):
        prompt, cost, output = steps.prompt[i], steps.cost[i], steps.output[i]
        price = prices.price(columns.models[steps.model[i]], steps.at[i])
        if not prompt or cost is None or price is None:
            return None
        # Nano-dollars to micro-dollars.
        spent = cost - (output or 0) * price.at(prompt).output / 1000
        total += spent * min(tokens / prompt, 1)
    return round(total)
