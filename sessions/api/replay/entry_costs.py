"""The cost of an entry over its life: it is sent with every prompt while in context."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

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


class _Sums(NamedTuple):
    """Of the first n steps: how many have no price, and micro-dollars per token of their prompts.
    Then prompt, step and micro-dollars, the smallest prompt first."""

    unknown: list[int]
    each_token: list[float]
    smallest: list[tuple[int, int, float]]


class StepCosts:
    """Costs of a run's prompts by step; read when first needed."""

    def __init__(self, session: Session, run: Run) -> None:
        self._steps, self._run = session.step_count, run

    def in_context(self, tokens: int, start: int, end: int | None) -> dict[str, Any]:
        """Number of steps in context [start, end), tokens sent, and the share of those prompts'
        cost.

        A prompt's cost is split by tokens, whether read from the cache or not; micro-dollars, None
        unless all of these steps have a price.
        """
        last = self._steps if end is None else min(end - 1, self._steps)
        count = max(last - start + 1, 0)
        return {
            "steps": count,
            "tokens": tokens * count,
            "cost_microusd": self._cost(tokens, start, last) if count else None,
        }

    def _cost(self, tokens: int, start: int, last: int) -> int | None:
        if len(self._prompts) < last:
            return None  # the newest steps are not measured yet
        begin, sums = start - 1, self._sums
        if sums.unknown[last] > sums.unknown[begin]:
            return None
        total = tokens * (sums.each_token[last] - sums.each_token[begin])
        # What is estimated as more than a whole prompt costs that prompt: few steps.
        for prompt, step, spent in sums.smallest:
            if prompt >= tokens:
                break
            if begin < step <= last:
                total -= spent * (tokens / prompt - 1)
        return round(total)

    @cached_property
    def _sums(self) -> _Sums:
        known = [(0, 0.0) if one is None else one for one in self._prompts]
        each = (spent / prompt if prompt else 0.0 for prompt, spent in known)
        return _Sums(
            [0, *accumulate(one is None for one in self._prompts)],
            [0.0, *accumulate(each)],
            sorted((one[0], step, one[1]) for step, one in enumerate(self._prompts, 1) if one),
        )

    @cached_property
    def _prompts(self) -> list[tuple[int, float] | None]:
        """Tokens and micro-dollars of each step's prompt; None without a price."""
        figures = tail.figures_json(tail.stored(self._run))
        columns = msgspec.json.decode(figures, type=_Columns)
        steps = columns.steps
        found: list[tuple[int, float] | None] = []
        rows = zip(steps.model, steps.at, steps.prompt, steps.cost, steps.output, strict=True)
        for model, at, prompt, cost, output in rows:
            price = prices.price(columns.models[model], at)
            if not prompt or cost is None or price is None:
                found.append(None)
                continue
            # Nano-dollars to micro-dollars.
            found.append((prompt, cost - (output or 0) * price.at(prompt).output / 1000))
        return found
