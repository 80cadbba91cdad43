"""Models that bind thinking to what was before it, with the source.

Such a model reads a thinking block only if nothing before it has changed since: not the system
prompt, not the tools, no earlier message. Otherwise that block and every later one is invalid, and
the request is refused, or the blocks are dropped if it asks for that.
"""

from __future__ import annotations

from compaction.prices.prices import names_of

SOURCE = "platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks"
READ_ON = "2026-11-23"

BINDING = (
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
)
"""Prefixes of model names (SOURCE, READ_ON). Claude Mythos 5.1 and older models do not check."""

BETA = "thinking-binding-controls-2026-08-01"
"""Value of the header `anthropic-beta` that allows `DROP`."""

DROP = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
"""What a request's `thinking` says so that invalid blocks are dropped, which costs their reasoning,
rather than the request refused."""


def binds_thinking(model: str) -> bool:
    """Return whether a model refuses or drops thinking once something before it has changed."""
    names = (name.replace(".", "-") for name in names_of(model))
    return any(name.startswith(BINDING) for name in names)
