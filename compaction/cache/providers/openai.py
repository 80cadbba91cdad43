"""OpenAI: an automatic cache. Minimums and TTLs are published; steps are those of the reads
that recorded sessions report."""

from __future__ import annotations

from compaction.cache.rule import HOUR_MS, CacheRule, Kept

EARLY = Kept(128, 0, 1_024, 600_000)
"""Models before GPT-5.5: 5 to 10 minutes without use, an hour at most. In the Codex sessions of
docs/sources.md, most calls within 10 minutes still read the cache, and most later calls do not."""

_CACHE = "OpenAI's automatic cache, which promises no call a read"

RULES = (
    CacheRule(
        provider="openai",
        title="GPT-5.6 and later",
        models=r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9])",
        kept=Kept(1_024, 256, 1_024, HOUR_MS // 2, writes=True),
        cache=_CACHE,
        source="guide; steps measured (114 of 114 calls)",
    ),
    CacheRule(
        provider="openai",
        title="GPT-5.5",
        models=r"gpt-5\.5",
        kept=Kept(512, 128, 1_024, 24 * HOUR_MS),
        cache=_CACHE,
        source="guide; steps measured (133 of 133 calls)",
    ),
    CacheRule(
        provider="openai",
        title="OpenAI before GPT-5.5",
        models=r"(?:gpt|chatgpt|codex|o[1-9])(?:-|$)",
        kept=EARLY,
        cache=_CACHE,
        source="guide: 5 to 10 minutes, at most an hour",
    ),
)
