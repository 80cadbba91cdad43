"""Models that refuse a conversation that ends with their own words, with the source."""

from __future__ import annotations

import re

from compaction.prices.prices import names_of

SOURCE = "platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-6"
READ_ON = "2026-11-23"

_ACCEPT = re.compile(
    r"claude-(?:\d|v\d|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-(?:\d{8}|latest|v\d)|@|:|$))"
)
"""Claude models before 4.6: `claude-3-…`, `claude-sonnet-4-5-20250929`, `claude-opus-4-1`."""

REFUSED = (
    "The context ends with the agent's own words, which this model refuses (400): append the next "
    "user message first."
)


def refuses_prefill(model: str) -> bool:
    """Return whether a model refuses a last message of the assistant: Claude 4.6 and later."""
    names = [name.replace(".", "-") for name in names_of(model)]
    claude = [name for name in names if name.startswith("claude-")]
    return bool(claude) and not any(map(_accepts, claude))


def _accepts(name: str) -> bool:
    return _ACCEPT.match(name) is not None
