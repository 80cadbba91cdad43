"""Normalization of usage reported by providers.

Anthropic's `input_tokens` exclude the cache; other providers' prompt counts include it. Nothing is
corrected: if the parts do not add up to the reported total, `reconciles` is False.
"""

from __future__ import annotations

from typing import NamedTuple

from compaction.context.session import Usage
from sessions.importers.records import Json
from sessions.importers.wire import mapping

_MOST = 10**12
"""Larger counts are not token counts."""


class Reported(NamedTuple):
    """Normalized usage (None if nothing usable was reported), and whether it adds up."""

    usage: Usage | None
    reconciles: bool


NOTHING = Reported(None, True)


def any_usage(given: dict[str, Json]) -> Reported:
    """Parse usage in Anthropic's, OpenAI's or Gemini's form, distinguished by field names."""
    if "promptTokenCount" in given or "prompt_token_count" in given:
        return gemini_usage(given)
    openai = ("prompt_tokens", "total_tokens", "input_tokens_details", "prompt_tokens_details")
    foreign = any(given.get(name) is not None for name in openai)
    return openai_usage(given) if foreign else anthropic_usage(given)


def anthropic_usage(raw: Json) -> Reported:
    """Parse a Messages API usage object; all zeros count as not reported."""
    given = mapping(raw)
    written = _count(given, "cache_creation_input_tokens")
    split = mapping(given.get("cache_creation"))
    hour = _count(split, "ephemeral_1h_input_tokens")
    five = _count(split, "ephemeral_5m_input_tokens")
    reconciles = not split or hour + five == written
    if hour + five != written:
        # In a response with several iterations the split covers only one: assume that the rest has
        # the same TTL. Without any split, the short TTL is the default.
        hour = written if hour and not five else min(hour, written)
        five = written - hour
    usage = Usage(
        uncached=_count(given, "input_tokens"),
        cache_read=_count(given, "cache_read_input_tokens"),
        cache_write_5m=five,
        cache_write_1h=hour,
        output=_count(given, "output_tokens"),
        reasoning=_count(mapping(given.get("output_tokens_details")), "thinking_tokens"),
    )
    return _reported(usage, reconciles)


def openai_usage(raw: Json) -> Reported:
    """Parse a chat-completions or Responses usage object, including DeepSeek's and LiteLLM's
    fields."""
    given = mapping(raw)
    prompt = _first(given, "prompt_tokens", "input_tokens")
    details = mapping(given.get("prompt_tokens_details") or given.get("input_tokens_details"))
    cached = max(
        _count(details, "cached_tokens"),
        _first(given, "prompt_cache_hit_tokens", "cached_input_tokens", "cache_read_input_tokens"),
    )
    written = max(
        _count(given, "cache_creation_input_tokens"), _count(details, "cache_creation_tokens")
    )
    output = _first(given, "completion_tokens", "output_tokens")
    more = mapping(given.get("completion_tokens_details") or given.get("output_tokens_details"))
    uncached = prompt - cached - written
    total = given.get("total_tokens")
    reconciles = uncached >= 0 and (not isinstance(total, int) or total == prompt + output)
    usage = Usage(
        uncached=max(uncached, 0),
        cache_read=cached,
        cache_write_5m=written,
        output=output,
        reasoning=_count(more, "reasoning_tokens") or _count(given, "reasoning_output_tokens"),
    )
    return _reported(usage, reconciles)


def gemini_usage(raw: Json) -> Reported:
    """Parse Gemini's usage, from REST or the SDK; thoughts are output, and beside it there."""
    given = mapping(raw)
    prompt = _first(given, "promptTokenCount", "prompt_token_count")
    prompt += _first(given, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    cached = _first(given, "cachedContentTokenCount", "cached_content_token_count")
    thoughts = _first(given, "thoughtsTokenCount", "thoughts_token_count")
    output = thoughts + _first(given, "candidatesTokenCount", "candidates_token_count")
    total = _first(given, "totalTokenCount", "total_token_count")
    usage = Usage(
        uncached=max(prompt - cached, 0), cache_read=cached, output=output, reasoning=thoughts
    )
    return _reported(usage, prompt >= cached and total in (0, prompt + output))


def cline_usage(raw: Json) -> Reported:
    """Parse Cline's per-message metrics, whose input includes cache reads."""
    given = mapping(raw)
    cached = _count(given, "cacheReadTokens")
    written = _count(given, "cacheWriteTokens")
    uncached = _count(given, "inputTokens") - cached - written
    usage = Usage(
        uncached=max(uncached, 0),
        cache_read=cached,
        cache_write_5m=written,
        output=_count(given, "outputTokens"),
    )
    return _reported(usage, uncached >= 0)


def pi_usage(raw: Json) -> Reported:
    """Parse pi's usage, whose input excludes the cache; aborted calls report nothing."""
    given = mapping(raw)
    usage = Usage(
        uncached=_count(given, "input"),
        cache_read=_count(given, "cacheRead"),
        cache_write_5m=_count(given, "cacheWrite"),
        output=_count(given, "output"),
    )
    total = given.get("totalTokens")
    stated = isinstance(total, int) and not isinstance(total, bool)
    return _reported(usage, not stated or total == usage.prompt + usage.output)


def _reported(usage: Usage, reconciles: bool) -> Reported:
    return Reported(usage, reconciles) if usage.prompt or usage.output else NOTHING


def _count(given: dict[str, Json], name: str) -> int:
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        return 0
    return value


def _first(given: dict[str, Json], *names: str) -> int:
    return next((count for name in names if (count := _count(given, name))), 0)
