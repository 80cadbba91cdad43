"""Gemini: its implicit cache alone. Google publishes minimums, and no TTL."""

from __future__ import annotations

from compaction.cache.rule import HOUR_MS, CacheRule, Kept

_CACHE = "Gemini's implicit cache, whose TTL is assumed and which promises no call a read"

RULES = (
    CacheRule(
        provider="gemini",
        title="Gemini 3",
        models=r"gemini-3",
        kept=Kept(4_096, 0, 4_096, HOUR_MS, behind=1_220),
        cache=_CACHE,
        source="guide for the minimum; steps measured in 24 calls of 26 in 3 sessions; TTL is ours",
    ),
    CacheRule(
        provider="gemini",
        title="Gemini before that",
        models=r"gemini",
        kept=Kept(2_048, 0, 2_048, HOUR_MS),
        cache=_CACHE,
        source="guide for the minimum; steps and TTL are ours",
    ),
)
