"""Prices, windows and cache minimums by model, each with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, TypeVar

from compaction.context.session import Usage

_Value = TypeVar("_Value")

PACKAGE_READ_ON = "2026-11-20"
"""When the pinned genai-prices data was read; calls without a time use the prices of this day."""

CACHE_DOCS = "platform.claude.com/docs/en/build-with-claude/prompt-caching"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model, in integer nano-dollars per token ($1 per million tokens is 1000).

    `above` holds the higher rates for long prompts as (threshold in prompt tokens, rates): the
    highest threshold that a call exceeds sets the rates of the whole call. For a model without a
    price for cache reads or writes, those fields hold its input price. `source` says where the
    figures come from, `date` the day they took effect (ISO). Rates with a fraction of a nano-dollar
    (some resellers' cache reads, none of Anthropic's or OpenAI's) are rounded.
    """

    model: str
    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int
    source: str
    date: str
    above: tuple[tuple[int, Price], ...] = ()

    def at(self, prompt: int) -> Price:
        """Return the rates for a prompt of this many tokens."""
        rates = self
        for start, tier in self.above:
            if prompt > start:
                rates = tier
        return rates


def nanos(usage: Usage, price: Price) -> int:
    """Return the exact nano-dollars of one call; round sums only for display."""
    rates = price.at(usage.prompt)
    return (
        usage.uncached * rates.input
        + usage.cache_read * rates.cache_read
        + usage.cache_write_5m * rates.cache_write_5m
        + usage.cache_write_1h * rates.cache_write_1h
        + usage.output * rates.output
    )


def micros(amount: int) -> int:
    """Convert nano-dollars to micro-dollars, rounding halves away from zero."""
    return (amount + 500) // 1000 if amount >= 0 else -((500 - amount) // 1000)


def cost(usage: Usage, price: Price) -> int:
    """Return the micro-dollars of one call, rounded once."""
    return micros(nanos(usage, price))


@dataclass(frozen=True, slots=True)
class _Noted:
    """A row of our own table: model name prefix, tokens, source, and the day it was read."""

    prefix: str
    tokens: int
    source: str
    date: str


_MINIMUMS = (
    _Noted("claude-opus-5-5", 512, "litellm 1.109.1 prompt_cache_min_tokens", "2026-11-20"),
    _Noted("claude-sonnet-5-5", 512, "litellm 1.109.1 prompt_cache_min_tokens", "2026-11-20"),
    _Noted("claude-haiku-5-5", 512, "litellm 1.109.1 prompt_cache_min_tokens", "2026-11-20"),
    _Noted("claude-opus-5", 512, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-fable-5", 512, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-mythos-5", 512, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-mythos-preview", 2048, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-opus-4-8", 1024, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-opus-4-7", 2048, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-opus-4-6", 4096, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-opus-4-5", 4096, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-opus-4", 1024, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-sonnet-5", 1024, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-sonnet-4", 1024, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-haiku-4-5", 4096, CACHE_DOCS, "2026-08-21"),
    _Noted("claude-3-5-haiku", 2048, CACHE_DOCS, "2026-08-21"),
    _Noted("gpt-", 1024, "OpenAI prompt caching guide", "2026-08-21"),
    _Noted("gemini-2.5-flash", 2048, "ai.google.dev/gemini-api/docs/caching", "2026-08-21"),
    _Noted("gemini-2.5-pro", 2048, "ai.google.dev/gemini-api/docs/caching", "2026-08-21"),
    _Noted("gemini-3", 4096, "ai.google.dev/gemini-api/docs/caching", "2026-08-21"),
)

_WINDOWS = (
    # genai-prices 0.2.3 has no window for this one.
    _Noted("gemini-2.5-pro", 1_048_576, "Google Cloud model page of gemini-2.5-pro", "2026-11-20"),
)

_HOUR_TO_INPUT = 2
"""Writing for one hour costs twice the input price on every Claude model (CACHE_DOCS)."""


@dataclass(slots=True)
class _Installed:
    """Custom figures of this process by model; empty in tests and benchmarks."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    windows: Mapping[str, int] = field(default_factory=dict)
    minimums: Mapping[str, int] = field(default_factory=dict)


_installed = _Installed()


def install(
    prices: Mapping[str, Price], windows: Mapping[str, int], minimums: Mapping[str, int]
) -> None:
    """Set the custom figures of this process, by lowercase model name; they take precedence."""
    _installed.prices, _installed.windows, _installed.minimums = prices, windows, minimums


def _own(table: Mapping[str, _Value], model: str) -> _Value | None:
    return next((table[name] for name in names_of(model) if name in table), None) if table else None


def price(
    model: str, at: int | None = None, overrides: Mapping[str, Price] | None = None
) -> Price | None:
    """Return the price of a model at a time (ms since the epoch), or None if it has no listed
    price.

    `overrides` win. Never fetches: the data is that of the installed package. The first call
    imports it (about 0.3 s), later calls are a lookup.
    """
    if overrides and model in overrides:
        return overrides[model]
    if own := _own(_installed.prices, model):
        return own
    return _listed(model, None if at is None else at // 900_000)


UNKNOWN_WINDOW = 200_000
"""Tokens assumed for a model without a known window; pages must mark figures based on it."""


def window(model: str, overrides: Mapping[str, int] | None = None) -> int | None:
    """Return a model's context window in tokens, or None if it is not listed.

    A client may use less: Claude Code compacts for a window of 200,000 unless the longer one was
    requested.
    """
    if overrides and model in overrides:
        return overrides[model]
    if (own := _own(_installed.windows, model)) is not None:
        return own
    for name in names_of(model):
        if noted := _find(_WINDOWS, name):
            return noted.tokens
        if found := _model_info(name):
            return int(found[1].context_window) if found[1].context_window else None
    return None


def minimum(model: str, overrides: Mapping[str, int] | None = None) -> int | None:
    """Return the shortest prefix, in tokens, that a model's provider caches; None if unknown."""
    if overrides and model in overrides:
        return overrides[model]
    if (own := _own(_installed.minimums, model)) is not None:
        return own
    for name in names_of(model):
        if noted := _find(_MINIMUMS, name.replace(".", "-") if "claude" in name else name):
            return noted.tokens
    return None


def _find(table: tuple[_Noted, ...], name: str) -> _Noted | None:
    matching = [noted for noted in table if name.startswith(noted.prefix)]
    return max(matching, key=lambda noted: len(noted.prefix), default=None)


@lru_cache(maxsize=512)
def names_of(model: str) -> tuple[str, ...]:
    """Return the names a model may be listed under: as given, then without gateway, region and
    version.
    """
    bare = model.lower().removesuffix("[1m]").rpartition("/")[2]
    bare = re.sub(r"^(?:[a-z]{2,6}\.)?anthropic\.", "", bare)
    bare = re.sub(r"-v\d{1,3}(?::\d{1,3})?$", "", bare)
    return tuple(dict.fromkeys(name for name in (model.lower(), bare) if name))


@lru_cache(maxsize=512)
def _model_info(name: str) -> tuple[str, Any] | None:
    from genai_prices.data_snapshot import get_snapshot

    # A name with its maker before a slash is an id of a gateway's, which has prices of its own.
    for gateway in (None, "openrouter") if "/" in name else (None,):
        try:
            provider, found = get_snapshot().find_provider_model(name, None, gateway, None)
        except LookupError:
            continue
        return provider.id, found
    return None


@lru_cache(maxsize=4096)
def _listed(model: str, quarter_hour: int | None) -> Price | None:
    for name in names_of(model):
        if found := _model_info(name):
            return _read(name, found[0], found[1], quarter_hour)
    return None


def _read(name: str, provider: str, found: Any, quarter_hour: int | None) -> Price | None:
    from genai_prices import __version__

    when = datetime.fromisoformat(f"{PACKAGE_READ_ON}T12:00:00+00:00")
    if quarter_hour is not None:
        when = datetime.fromtimestamp(quarter_hour * 900, UTC)
    rates = found.get_prices(when)
    if rates.input_mtok is None or rates.output_mtok is None:
        return None
    source = f"genai-prices {__version__} {provider}/{found.id}"
    since = _since(found, rates)
    names = ("input", "cache_read", "cache_write", "cache_write_1h", "output")
    listed = {key: getattr(rates, f"{key}_mtok") for key in names}
    starts = {tier.start for value in listed.values() for tier in getattr(value, "tiers", ())}

    def rates_over(start: int) -> Price:
        return _make(name, {k: _over(v, start) for k, v in listed.items()}, source, since)

    base = rates_over(0)
    above = tuple((start, rates_over(start)) for start in sorted(starts))
    return Price(
        base.model,
        base.input,
        base.cache_read,
        base.cache_write_5m,
        base.cache_write_1h,
        base.output,
        source,
        since,
        above,
    )


def _make(name: str, listed: dict[str, int | None], source: str, since: str) -> Price:
    uncached, output = listed["input"] or 0, listed["output"] or 0
    read, write, hour = listed["cache_read"], listed["cache_write"], listed["cache_write_1h"]
    five = uncached if write is None else write
    if hour is None:
        hour = uncached * _HOUR_TO_INPUT if "claude" in name and write is not None else five
    return Price(
        name, uncached, uncached if read is None else read, five, hour, output, source, since
    )


def _over(value: Any, start: int) -> int | None:
    """Return the nano-dollars per token of prompts longer than `start` tokens."""
    if value is None:
        return None
    rate = getattr(value, "base", value)
    for tier in getattr(value, "tiers", ()):
        if tier.start <= start:
            rate = tier.price
    return int((Decimal(rate) * 1000).to_integral_value(ROUND_HALF_EVEN))


def _since(found: Any, rates: Any) -> str:
    """Return the first day of the rates if the package knows it, else the day it was read."""
    if isinstance(found.prices, list):
        for conditional in found.prices:
            if conditional.prices is rates:
                start = getattr(conditional.constraint, "start_date", None)
                return start.isoformat() if start else PACKAGE_READ_ON
    return PACKAGE_READ_ON
