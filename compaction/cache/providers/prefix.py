"""Providers that keep the longest prefix and publish no more."""

from __future__ import annotations

from compaction.cache.rule import HOUR_MS, CacheRule, Kept

PLAIN = Kept(64, 0, 64, HOUR_MS, answers=True)

RULES = (
    CacheRule(
        provider="prefix",
        title="DeepSeek, Kimi, Grok, GLM, Qwen, MiniMax, MiMo, Hy3; any other model whose listed "
        "price for cache reads is lower",
        models=r"(?:deepseek|kimi|moonshot|grok|glm|qwen|minimax|mimo|hy3)",
        kept=PLAIN,
        cache="its provider publishes no rules: the longest prefix is assumed",
        source="steps measured (DeepSeek, 30 of 30 calls); rest ours",
    ),
)
