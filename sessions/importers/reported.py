"""Usage as providers report it, brought into one form at the door.

Anthropic's `input_tokens` leave the cache out, everybody else's prompt count includes it. Nothing
is repaired: where the parts do not add up to the stated total, `reconciles` says so.
"""

from __future__ import annotations

from typing import NamedTuple

from compaction.session import Usage
from sessions.importers.records import Json
from sessions.importers.wire import mapping

_MOST = 10**12
"""Counts beyond this are no token counts."""


class Reported(NamedTuple):
    """Normalised usage (None where nothing usable was reported), and whether it adds up."""

    usage: Usage | None
    reconciles: bool


NOTHING = Reported(None, True)


def anthropic_usage(raw: Json) -> Reported:
    """Read a Messages API usage object; all-zero usage is no report."""
    given = mapping(raw)
    written = _count(given, "cache_creation_input_tokens")
    split = mapping(given.get("cache_creation"))
    hour = _count(split, "ephemeral_1h_input_tokens")
    five = _count(split, "ephemeral_5m_input_tokens")
    reconciles = not split or hour + five == written
    if hour + five != written:
        # The split of a response of several iterations tells of one of them only: the rest is
        # taken to live as long. Without any split the short lifetime is the default.
        hour = written if hour and not five else min(hour, written)
        five = written - hour
    usage = Usage(
        fresh=_count(given, "input_tokens"),
        cache_read=_count(given, "cache_read_input_tokens"),
        cache_write_5m=five,
        cache_write_1h=hour,
        output=_count(given, "output_tokens"),
        reasoning=_count(mapping(given.get("output_tokens_details")), "thinking_tokens"),
    )
    return _reported(usage, reconciles)


def openai_usage(raw: Json) -> Reported:
    """Read a chat-completions or Responses usage object, DeepSeek's and LiteLLM's fields too."""
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
    fresh = prompt - cached - written
    total = given.get("total_tokens")
    reconciles = fresh >= 0 and (not isinstance(total, int) or total == prompt + output)
    usage = Usage(
        fresh=max(fresh, 0),
        cache_read=cached,
        cache_write_5m=written,
        output=output,
        reasoning=_count(more, "reasoning_tokens") or _count(given, "reasoning_output_tokens"),
    )
    return _reported(usage, reconciles)


def cline_usage(raw: Json) -> Reported:
    """Read Cline's per-message metrics, whose input includes what was read from the cache."""
    given = mapping(raw)
    cached = _count(given, "cacheReadTokens")
    written = _count(given, "cacheWriteTokens")
    fresh = _count(given, "inputTokens") - cached - written
    usage = Usage(
        fresh=max(fresh, 0),
        cache_read=cached,
        cache_write_5m=written,
        output=_count(given, "outputTokens"),
    )
    return _reported(usage, fresh >= 0)


def pi_usage(raw: Json) -> Reported:
    """Read pi's usage, whose input leaves the cache out; an aborted call reports nothing."""
    given = mapping(raw)
    usage = Usage(
        fresh=_count(given, "input"),
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
