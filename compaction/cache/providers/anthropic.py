"""Anthropic: breakpoints, which requests set; docs/record/cache.md has the rules."""

from __future__ import annotations

from compaction.cache.rule import CacheRule

RULES = (
    CacheRule(
        provider="anthropic",
        title="Claude",
        models=r".*claude",
        kept=None,
        cache="Anthropic's rules",
        source="Anthropic's page; minimums in `compaction/prices`",
    ),
)
