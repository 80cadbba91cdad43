"""Models that take system messages between the others, with the source.

Such a message follows a user's message and is last, or an assistant's follows it. One that is
cleared at the next user message is sent again unchanged with every later request, where the model
no longer sees it: it costs no tokens, and nothing before any thinking has changed.
"""

from __future__ import annotations

from compaction.prices.prices import names_of

SOURCE = "platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages"
READ_ON = "2026-11-23"

TAKING = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5-5",
)
"""Prefixes of model names (SOURCE, READ_ON). Claude Sonnet 5 does not take them; for Haiku 5.5 only
a client's model profile says so, and a refused request costs more than a recitation in place."""

CLEARED = "next_user_message"
"""Value of a message's `clear_at`: the model sees it until then."""

BETA = "mid-conversation-system-clear-at-2026-08-21"
"""Value of the header `anthropic-beta` that allows `clear_at`."""


def takes_system_messages(model: str) -> bool:
    """Return whether a model takes system messages between the others, also for one turn."""
    names = (name.replace(".", "-") for name in names_of(model))
    return any(name.startswith(TAKING) for name in names)
