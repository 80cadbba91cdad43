"""System messages between the others: which of them the Messages API refuses, as published.

Such a message follows one of the user, or another system message, and nothing but one of the
assistant follows it. `clear_at` needs a beta, and allows neither breakpoints nor anything but text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

MODELS = ("claude-opus-4-8", "claude-opus-5", "claude-fable-5", "claude-sonnet-5-5")
BETA = "mid-conversation-system-clear-at-2026-08-21"


def wrong(body: Json, betas: str = BETA) -> list[str]:
    """Why a request is refused; empty where it is not."""
    messages = body["messages"]
    places = [at for at, message in enumerate(messages) if message["role"] == "system"]
    if places and not str(body.get("model")).startswith(MODELS):
        return [f"messages.{places[0]}: role 'system' is not supported on this model"]
    found = [one for at in places for one in _misplaced(messages, at)]
    for at, message in enumerate(messages):
        if message.get("clear_at") is not None:
            found += (f"messages.{at}{problem}" for problem in _clearing(message, betas))
    return found


def others(messages: list[Json]) -> list[Json]:
    """The messages of user and assistant."""
    return [message for message in messages if message.get("role") != "system"]


def shown(messages: list[Json]) -> list[Json]:
    """What the model sees of them: not those that have been cleared."""
    last = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=0)
    return [one for at, one in enumerate(messages) if at > last or not one.get("clear_at")]


def _misplaced(messages: list[Json], at: int) -> Iterator[str]:
    if at == 0 or messages[at - 1]["role"] == "assistant":
        yield f"messages.{at}: a system message must follow a user message"
    if at + 1 < len(messages) and messages[at + 1]["role"] == "user":
        yield f"messages.{at}: a system message must precede an assistant message or end the array"


def _clearing(message: Json, betas: str) -> Iterator[str]:
    if BETA not in betas.split(","):
        yield ".clear_at: Extra inputs are not permitted"
    if message["role"] != "system":
        yield ".clear_at: only permitted on role 'system' messages"
    if message["clear_at"] not in ("next_user_message", "never"):
        yield ".clear_at: Input should be 'next_user_message' or 'never'"
    content = message["content"]
    for block in [] if isinstance(content, str) else content:
        if block["type"] != "text":
            yield ": a turn-scoped system message supports text blocks only"
        if "cache_control" in block:
            yield ".content: cache_control is not permitted on a turn-scoped system message"
