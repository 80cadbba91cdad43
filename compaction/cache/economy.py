"""When an edit pays: its cost in cache against its savings in prompts, at the model's prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.cache.rules import Rules, rule_of, rules_of
from compaction.cache.simulator import TTL, TTL_MS
from compaction.context.session import Usage
from compaction.prices.prices import Price, price

Objective = Literal["cheap", "lean"]
"""What a policy optimizes for: cost (cheap) or context size (lean)."""

TTLSetting = Literal["recorded", "5m", "1h", "mixed"]
"""The TTL of a policy's contexts: as recorded, the same everywhere, or one hour for tools and
system prompt and five minutes for messages (mixed). Never longer than the client asked for."""


def granted(setting: TTLSetting, asked: TTL) -> TTLSetting:
    """Return a setting without any TTL longer than the client asked for, whose prices are higher:
    "5m", "1h" or "mixed"."""
    if asked == "5m" or setting == "5m":
        return "5m"
    return "1h" if setting == "recorded" else setting


@dataclass(frozen=True, slots=True)
class Rates:
    """The price of a token read from the cache, of one written to it, and of one of the output, in
    any one unit.

    `ttl` is the TTL of an unused entry, in ms. The defaults are ratios for a model without a
    known price: reads at 0.1 of the input price, writes at 1.25, output at 5 (Anthropic's for most
    models), five minutes; `known` says whether they come from a price table.
    """

    read: int = 10
    write: int = 125
    ttl: int = TTL_MS["5m"]
    known: bool = False
    output: int = 500

    @property
    def rewriting(self) -> int:
        """The extra cost of a token that an edit causes to be written instead of read."""
        return max(self.write - self.read, 0)


def rates_of(price: Price | None, ttl: TTL = "5m", own: int | None = None) -> Rates:
    """Return the rates of a model for a requested TTL.

    `own` (ms) overrides it for providers that set the TTL themselves.
    """
    if price is None:
        return Rates(ttl=own or TTL_MS[ttl])
    write = price.cache_write_1h if ttl == "1h" and own is None else price.cache_write_5m
    kept = TTL_MS[ttl] if own is None else own
    return Rates(price.cache_read, write, kept, known=True, output=price.output)


def message_ttl(ttl: TTLSetting, recorded: TTL = "5m") -> TTL:
    """Return the TTL of messages, which are what an edit causes to be written again."""
    return "1h" if granted(ttl, recorded) == "1h" else "5m"


def asked_for(usages: Iterable[Usage]) -> TTL:
    """Return the TTL that most of a session's reported cache writes requested."""
    five = hour = 0
    for usage in usages:
        five, hour = five + usage.cache_write_5m, hour + usage.cache_write_1h
    return "1h" if hour > five else "5m"


def cached_by(model: str, listed: Price | None) -> Rules:
    """Return the cache rules of a model: by its name, otherwise by its price.

    A model with a price but none for cache reads has no cache.
    """
    rules = rules_of(model)
    if rules != "unknown" or listed is None:
        return rules
    return "none" if listed.cache_read == listed.input else "prefix"


def session_rates(model: str, began: int | None, recorded: TTL, ttl: TTLSetting) -> Rates:
    """Return the rates that a policy uses in a session, live or simulated.

    They use the model's price when the session began (ms since the epoch; None: today's) and the
    policy's TTL, or that of most `recorded` writes. If requests cannot set a TTL, the provider's
    own rules apply.
    """
    listed = price(model, began)
    rules = cached_by(model, listed)
    rule = rule_of(model, rules)
    alone = rule.kept.ttl if rule and rule.kept else None
    return rates_of(listed, message_ttl(ttl, recorded), alone)


def pays(remaining: float, cleared: int, rewritten: int, rates: Rates) -> bool:
    """Return whether clearing some tokens and rewriting others pays over the remaining calls.

    remaining x cleared x read > rewritten x (write - read): docs/sources.md, Worked cache example.
    """
    return remaining * cleared * rates.read > rewritten * rates.rewriting


def expected(steps: int) -> int:
    """Predict how many more model calls a session will make: as many as so far.

    Half of the recorded sessions that reach 10, 20 or 30 calls make at least 1.1, 0.95 and 0.9
    times as many more (docs/sources.md, How long sessions last).
    """
    return steps
