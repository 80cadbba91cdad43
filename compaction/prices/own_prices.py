"""Custom prices, windows and cache minimums, for models that are listed wrongly or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.prices.prices import Price

_RATES = ("input", "cache_read", "cache_write", "cache_write_1h", "output")
_COUNTS = ("window", "minimum")
_HIGHEST = 1_000_000
"""Dollars per million tokens above which a price is taken for a typo."""
_MOST_TOKENS = 10**9


class InvalidPrices(ValueError):
    """A price table has an invalid field; carries the field and the problem."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field, self.problem = field, problem


@dataclass(frozen=True, slots=True)
class Own:
    """Custom figures by model name; they take precedence over all listed ones."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    minimums: Mapping[str, int] = field(default_factory=dict)


def own_prices(document: Any, source: str) -> Own:
    """Parse {"models": {NAME: {input, output, cache_read, cache_write, cache_write_1h, window,
    minimum, date}}}.

    Prices are in dollars per million tokens, `window` and `minimum` in tokens. Without `cache_read`
    or a write price, such tokens cost as much as input; a one-hour write defaults to the write
    price. `source` is shown with each price. Raises InvalidPrices, which names the field.
    """
    models = document.get("models") if isinstance(document, Mapping) else None
    if not isinstance(models, Mapping):
        raise InvalidPrices("models", "must be a table of models by name")
    prices: dict[str, Price] = {}
    windows: dict[str, int] = {}
    minimums: dict[str, int] = {}
    for name, given in models.items():
        at = f"models.{name}"
        if not isinstance(given, Mapping):
            raise InvalidPrices(at, "must be a table")
        for key in given:
            if key not in (*_RATES, *_COUNTS, "date"):
                known = ", ".join((*_RATES, *_COUNTS, "date"))
                raise InvalidPrices(f"{at}.{key}", f"is not a known field; use one of {known}")
        key = str(name).lower()
        if any(rate in given for rate in _RATES):
            prices[key] = _price(str(name), given, source)
        for table, what in ((windows, "window"), (minimums, "minimum")):
            if what in given:
                table[key] = _count(given[what], f"{at}.{what}")
    return Own(prices, windows, minimums)


def _price(name: str, given: Mapping[str, Any], source: str) -> Price:
    at = f"models.{name}"
    for needed in ("input", "output"):
        if needed not in given:
            raise InvalidPrices(f"{at}.{needed}", "is required once any price is given")
    rates = {key: _nanos(given[key], f"{at}.{key}") for key in _RATES if key in given}
    date = given.get("date", "")
    write = rates.get("cache_write", rates["input"])
    return Price(
        name,
        rates["input"],
        rates.get("cache_read", rates["input"]),
        write,
        rates.get("cache_write_1h", write),
        rates["output"],
        source,
        str(date),
    )


def _nanos(value: Any, at: str) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= _HIGHEST:
        raise InvalidPrices(at, f"must be dollars per million tokens, 0 to {_HIGHEST:,}")
    return int(round(value * 1000))


def _count(value: Any, at: str) -> int:
    count: int = -1 if isinstance(value, bool) or not isinstance(value, int) else value
    if not 0 <= count <= _MOST_TOKENS:
        raise InvalidPrices(at, "must be a whole number of tokens")
    return count
