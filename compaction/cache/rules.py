"""Find the rules that cache a model's prompts."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import Literal

from compaction.cache import providers
from compaction.cache.providers.prefix import PLAIN
from compaction.cache.rule import CacheRule, Kept
from compaction.records import records_in

RULES: tuple[CacheRule, ...] = tuple(
    chain.from_iterable(records_in(providers.__name__, providers.__path__, "RULES"))
)
"""In the order in which they are matched against a model."""

Rules = str
"""The provider whose cache is simulated; `none`: no cache, every token is uncached; `unknown`: no
figures are given."""

Confidence = Literal["guaranteed", "likely", "best-effort"]
"""How reliable a prediction is: promised by the provider (no cache, or no read of another prefix),
by its exact rules, or typical behavior of an automatic cache."""


def bare(model: str) -> str:
    """Return the name of a model without its gateway prefix."""
    return model.lower().rpartition("/")[2]


def rules_of(model: str) -> Rules:
    """Return the rules that cache a model's prompts, by its name."""
    name = bare(model)
    return next((rule.provider for rule in RULES if re.match(rule.models, name)), "unknown")


@lru_cache(maxsize=512)
def rule_of(model: str, rules: Rules | None = None) -> CacheRule | None:
    """Return the rule of a model; None if nothing is cached or known.

    `rules` overrides the provider, for models with a custom name: the last rule of a provider is
    the most general.
    """
    name, provider = bare(model), rules or rules_of(model)
    own = [rule for rule in RULES if rule.provider == provider]
    return next((rule for rule in own if re.match(rule.models, name)), own[-1] if own else None)


def kept_by(model: str, rules: Rules | None = None) -> Kept:
    """Return how an automatic cache keeps a model's prefixes."""
    rule = rule_of(model, rules)
    return PLAIN if rule is None or rule.kept is None else rule.kept


def takes_breakpoints(rules: Rules) -> bool:
    """Return whether requests set breakpoints and TTLs; otherwise the provider decides."""
    return any(rule.provider == rules and rule.kept is None for rule in RULES)


def strips_thinking(model: str) -> bool:
    """Return whether a new human turn removes the thinking of earlier turns from the prompt.

    Anthropic: Opus before 4.5, Sonnet before 4.6, every Haiku. OpenAI: reasoning of earlier turns
    is not kept up to GPT-5.5.
    """
    name = bare(model).replace(".", "-")
    if "haiku" in name or "claude-3" in name:
        return True
    if found := re.search(r"(opus|sonnet)-(\d{1,2})(?:-(\d{1,2})(?!\d))?", name):
        version = int(found[2]), int(found[3] or 0)
        return version < ((4, 5) if found[1] == "opus" else (4, 6))
    return bool(re.match(r"gpt-5(?!-[6-9]|-\d\d(?!\d))|o[1-9]-", name))
