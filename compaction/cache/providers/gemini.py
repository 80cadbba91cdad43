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
        source="guide; steps measured (24 of 26 calls); TTL ours",
    ),
    CacheRule(
        provider="gemini",
        title="Gemini before that",
        models=r"gemini",
        kept=Kept(2_048, 0, 2_048, HOUR_MS),
        cache=_CACHE,
        source="guide; steps and TTL ours",
    ),
)
