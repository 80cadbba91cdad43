"""Acme: an automatic cache in large steps."""

from __future__ import annotations

from compaction.cache.rule import CacheRule, Kept

RULES = (
    CacheRule(
        provider="acme",
        title="Acme",
        models=r"acme-",
        kept=Kept(step=1_000, lag=0, minimum=2_000, ttl=600_000),
        cache="Acme's automatic cache, which promises no call a read",
        source="made up for this page",
    ),
)
