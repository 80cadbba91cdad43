"""What an edit costs in cache and saves in prompts: when it pays, by the model's own prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.cache.rules import Rules, kept_by, rules_of
from compaction.prices import Price, price
from compaction.session import Usage

Objective = Literal["cheap", "lean"]
"""What a policy wants little of: dollars, or tokens in the prompt."""

Keep = Literal["5m", "1h"]
"""How long a cache entry may be asked to live unused."""

Lifetime = Literal["recorded", "5m", "1h", "mixed"]
"""What a policy asks of the cache entries of its contexts: as the session's own calls asked, all
the same, or an hour for tools and system prompt and five minutes for what is said."""

KEEP_MS: dict[Keep, int] = {"5m": 300_000, "1h": 3_600_000}


@dataclass(frozen=True, slots=True)
class Rates:
    """What a token costs that is read from the cache, and one that is written to it.

    In any one unit; `lifetime` is how long an entry lives unused, in ms. The defaults are ratios
    for a model without a known price: reads at a tenth of the input, writes at 1.25 of it
    (Anthropic's for most models), five minutes; `known` says whether a price table gave them.
    """

    read: int = 10
    write: int = 125
    lifetime: int = KEEP_MS["5m"]
    known: bool = False

    @property
    def rewriting(self) -> int:
        """What a token costs above its reading where an edit has it written again."""
        return max(self.write - self.read, 0)


def rates_of(price: Price | None, keep: Keep = "5m", lifetime: int | None = None) -> Rates:
    """The rates of a model whose entries are asked to live so long.

    `lifetime` in ms stands where the provider alone decides.
    """
    if price is None:
        return Rates(lifetime=lifetime or KEEP_MS[keep])
    if lifetime is not None:
        return Rates(price.cache_read, price.cache_write_5m, lifetime, known=True)
    write = price.cache_write_1h if keep == "1h" else price.cache_write_5m
    return Rates(price.cache_read, write, KEEP_MS[keep], known=True)


def keep_of(lifetime: Lifetime, recorded: Keep = "5m") -> Keep:
    """How long what is said stays in the cache: that which an edit has written again."""
    if lifetime == "recorded":
        return recorded
    return "1h" if lifetime == "1h" else "5m"


def asked_for(usages: Iterable[Usage]) -> Keep:
    """How long a session's cache entries live: as most of its reported writes asked for."""
    five = hour = 0
    for usage in usages:
        five, hour = five + usage.cache_write_5m, hour + usage.cache_write_1h
    return "1h" if hour > five else "5m"


def cached_by(model: str, listed: Price | None) -> Rules:
    """Whose rules cache a model's prompts; where its name does not tell, its price does.

    Who lists a price for tokens and none for reading them again keeps none.
    """
    rules = rules_of(model)
    if rules != "unknown" or listed is None:
        return rules
    return "none" if listed.cache_read == listed.input else "prefix"


def session_rates(model: str, began: int | None, recorded: Keep, lifetime: Lifetime) -> Rates:
    """What a policy reckons with in a session, served or simulated.

    The model's price when the session began (ms since the epoch; None: today's), and as long a
    life as the policy asks for, or most of the `recorded` writes did; where the provider asks
    nobody, as its rules keep.
    """
    listed = price(model, began)
    rules = cached_by(model, listed)
    alone = kept_by(model, rules).lifetime if rules in ("openai", "gemini", "prefix") else None
    return rates_of(listed, keep_of(lifetime, recorded), alone)


def pays(remaining: float, cleared: int, rewritten: int, rates: Rates) -> bool:
    """Whether clearing some tokens and rewriting others pays over the calls that remain.

    remaining x cleared x read > rewritten x (write - read): docs/sources.md, Worked cache example.
    """
    return remaining * cleared * rates.read > rewritten * rates.rewriting


def calls_until(cleared: int, rewritten: int, rates: Rates) -> int | None:
    """The number of calls from which on an edit has paid; None where it never does."""
    saved = cleared * rates.read
    return rewritten * rates.rewriting // saved + 1 if saved > 0 else None


def expected(steps: int) -> int:
    """Model calls that a session of so many is taken to make yet: as many again.

    Half of the corpus' sessions that reach 10, 20 or 30 calls make 1.1, 0.95 and 0.9 times as many
    more (docs/sources.md, How long sessions last).
    """
    return steps
