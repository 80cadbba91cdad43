"""Stored form of the requests behind a response: rows of a model and its counts, as JSON."""

from __future__ import annotations

import json

from compaction.context.session import MOST_TOKENS, Iteration, Usage


def packed(usage: Usage) -> str | None:
    """The stored form; None if the response took one request."""
    rows = [(one.model, counts_of(one.usage)) for one in usage.iterations]
    return json.dumps(rows, separators=(",", ":")) if rows else None


def unpacked(stored: str | None) -> tuple[Iteration, ...]:
    """The requests behind a response; empty if it took one. Raises ValueError."""
    try:
        rows = json.loads(stored) if stored else []
        return tuple(Iteration(_usage(*map(_count, counts)), str(model)) for model, counts in rows)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _usage(
    uncached: int, read: int, write_5m: int, write_1h: int, output: int, reasoning: int
) -> Usage:
    return Usage(uncached, read, write_5m, write_1h, output, reasoning)


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value <= MOST_TOKENS:
        raise ValueError(f"{value!r} is not a count of tokens")
    return value


def counts_of(usage: Usage) -> tuple[int, ...]:
    """The counts of a usage, in the order of its fields."""
    return (
        usage.uncached,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
    )
