"""Normalization of usage reported by providers.

Anthropic's `input_tokens` exclude the cache; other providers' prompt counts include it. Nothing is
corrected: if the parts do not add up to the reported total, `reconciles` is False.
"""

from __future__ import annotations

from typing import NamedTuple

from compaction.context.session import MOST_TOKENS, Iteration, Usage, of_iterations
from sessions.importers.decoded import NotALog
from sessions.importers.records import Json
from sessions.importers.wire import mapping, sequence, string

_MOST_ITERATIONS = 100
"""Requests of one response that are read one by one."""


class Reported(NamedTuple):
    """Normalized usage (None if nothing usable was reported), and whether it adds up."""

    usage: Usage | None
    reconciles: bool


class Implausible(NotALog):
    """Usage with a count that no call can have."""


NOTHING = Reported(None, True)


def any_usage(given: dict[str, Json]) -> Reported:
    """Parse usage in Anthropic's, OpenAI's or Gemini's form, distinguished by field names."""
    if "promptTokenCount" in given or "prompt_token_count" in given:
        return gemini_usage(given)
    openai = ("prompt_tokens", "total_tokens", "input_tokens_details", "prompt_tokens_details")
    foreign = any(given.get(name) is not None for name in openai)
    return openai_usage(given) if foreign else anthropic_usage(given)


def anthropic_usage(raw: Json) -> Reported:
    """Parse a Messages API usage object; all zeros count as not reported.

    Its counts are sums over the iterations of the response, and leave out those of other models.
    """
    given = mapping(raw)
    listed = [mapping(one) for one in sequence(given.get("iterations"))[:_MOST_ITERATIONS]]
    return _iterations(listed) if len(listed) > 1 else _messages(given)


def _iterations(listed: list[dict[str, Json]]) -> Reported:
    """Parse the requests of one response: the last that is no advisor's is the response's own, and
    so are those of the same model."""
    models = [string(one.get("model"))[:120] for one in listed]
    advice = [one.get("type") == "advisor_message" for one in listed]
    named = zip(models, advice, strict=True)
    own = next((name for name, advises in reversed([*named]) if not advises), "")
    parsed = [_messages(one) for one in listed]
    usage = of_iterations(
        tuple(
            Iteration(one.usage or Usage(), model if advises or model != own else "")
            for one, model, advises in zip(parsed, models, advice, strict=True)
        )
    )
    return _reported(usage, all(one.reconciles for one in parsed)) if usage else NOTHING


def _messages(given: dict[str, Json]) -> Reported:
    written = _count(given, "cache_creation_input_tokens")
    split = mapping(given.get("cache_creation"))
    hour = _count(split, "ephemeral_1h_input_tokens")
    five = _count(split, "ephemeral_5m_input_tokens")
    reconciles = not split or hour + five == written
    if hour + five != written:
        # Assume that what the split leaves out has the same TTL. Without any split, the short TTL
        # is the default.
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


def plausible(count: int, what: str) -> int:
    """The count. Raises Implausible if no call can have it."""
    if count > MOST_TOKENS:
        raise Implausible(
            f"Usage counts {count:,} tokens ({what}), more than the {MOST_TOKENS:,} that a call "
            "may have. Correct the count and import the file again."
        )
    return count


def _reported(usage: Usage, reconciles: bool) -> Reported:
    plausible(usage.billed.prompt, "whole prompt")
    return Reported(usage, reconciles) if usage.prompt or usage.output else NOTHING


def _count(given: dict[str, Json], name: str) -> int:
    value = given.get(name)
    if isinstance(value, str) and 18 < len(value) < 40 and value.isascii() and value.isdecimal():
        value = int(value)  # numbers that no column holds are read as text
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return 0
    return plausible(value, name)


def _first(given: dict[str, Json], *names: str) -> int:
    return next((count for name in names if (count := _count(given, name))), 0)
