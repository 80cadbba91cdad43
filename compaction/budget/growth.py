"""How soon a growing context reaches a limit, and how much its agent uses per minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

STEPS = 20
"""Steps looked back (docs/live/live.md says how far off forecasts from them are)."""

LEAST = 3
"""Least steps with known sizes for a forecast."""

SHRUNK = 0.5
"""A prompt below this share of the one before was compacted."""

FARTHEST = 200
"""Steps beyond which a forecast only says that the limit is far."""


@dataclass(frozen=True, slots=True)
class LimitForecast:
    """A context reaches `limit` tokens in about `steps` model calls, growing by `growth` tokens per
    call in the last `observed` ones; 0 steps: the next call does."""

    steps: int
    growth: int
    limit: int
    observed: int

    @property
    def far(self) -> bool:
        """Whether the limit is too far for the number of steps to mean much."""
        return self.steps > FARTHEST


def steps_until(sizes: Sequence[int], limit: int | None) -> LimitForecast | None:
    """Forecast when a context reaches a limit from the sizes of its last prompts, oldest first.

    The last size is that of the next call. Only growth since it last shrank by half counts: a
    compaction is no growth, a smaller edit slows it. None without a limit, with fewer than `LEAST`
    sizes since then, or if it does not grow.
    """
    if limit is None or not sizes:
        return None
    recent = list(sizes[-STEPS - 1 :])
    begin = max(
        (place for place in range(1, len(recent)) if recent[place] < SHRUNK * recent[place - 1]),
        default=0,
    )
    recent = recent[begin:]
    if recent[-1] >= limit:
        return LimitForecast(0, 0, limit, len(recent) - 1)
    if len(recent) < LEAST:
        return None
    growth = (recent[-1] - recent[0]) / (len(recent) - 1)
    if growth <= 0:
        return None
    steps = ceil((limit - recent[-1]) / growth)
    return LimitForecast(steps, round(growth), limit, len(recent) - 1)


RATE_MS, RATE_LEAST_MS = 300_000, 60_000
"""Milliseconds that a rate is of, and fewest: seconds say nothing of a minute (our choice)."""


@dataclass(frozen=True, slots=True)
class UseRate:
    """Tokens (prompt and output) and micro-dollars per minute over `calls` calls in `ms`;
    micro-dollars are None if a price is unknown."""

    tokens: float
    microusd: float | None
    calls: int
    ms: int


def rate_of(calls: Sequence[tuple[int, int, int | None]], began: int, now: int) -> UseRate | None:
    """Rate of calls, each with its time (ms), tokens and micro-dollars: those of the last `RATE_MS`
    to `now`, idle times included, or since the session `began`. None if that was less than
    `RATE_LEAST_MS` ago, or without a call."""
    ms = min(now - began, RATE_MS)
    late = [(tokens, cost) for at, tokens, cost in calls if at > now - ms]
    if ms < RATE_LEAST_MS or not late:
        return None
    minutes = ms / 60_000
    costs = [cost for _, cost in late]
    spent = None if None in costs else sum(filter(None, costs)) / minutes
    return UseRate(sum(tokens for tokens, _ in late) / minutes, spent, len(late), ms)
