"""System messages between the others: which of them the Messages API refuses, as published.

Such a message follows one of the user, or another system message, and nothing but one of the
assistant follows it. `clear_at` needs a beta, and allows neither breakpoints nor anything but text.
A message that only sets the effort may be anywhere. The effort and changes of tools need a beta
each; tools are named as `tools` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

MODELS = ("claude-opus-4-8", "claude-opus-5", "claude-fable-5", "claude-sonnet-5-5")
BETA = "mid-conversation-system-clear-at-2026-08-21"
EFFORT = {"mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"}
"""Any of them; the second is what Claude Code sends."""
TOOLS = {"mid-conversation-tool-changes-2026-07-01"}
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def wrong(body: Json, betas: str = ",".join((BETA, *EFFORT, *TOOLS))) -> list[str]:
    """Why a request is refused; empty where it is not."""
    messages = body["messages"]
    places = [at for at, message in enumerate(messages) if message["role"] == "system"]
    if places and not str(body.get("model")).startswith(MODELS):
        return [f"messages.{places[0]}: role 'system' is not supported on this model"]
    found = [one for at in places for one in _misplaced(messages, at)]
    for at, message in enumerate(messages):
        if message.get("clear_at") is not None:
            found += (f"messages.{at}{problem}" for problem in _clearing(message, betas))
        found += (f"messages.{at}{problem}" for problem in _directing(message, body, betas))
    return found


def others(messages: list[Json]) -> list[Json]:
    """The messages of user and assistant."""
    return [message for message in messages if message.get("role") != "system"]


def shown(messages: list[Json]) -> list[Json]:
    """What the model sees of them: not those that have been cleared."""
    last = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=0)
    return [one for at, one in enumerate(messages) if at > last or not one.get("clear_at")]


def _misplaced(messages: list[Json], at: int) -> Iterator[str]:
    if not messages[at]["content"]:
        return
    if at == 0 or messages[at - 1]["role"] == "assistant":
        yield f"messages.{at}: a system message must follow a user message"
    if at + 1 < len(messages) and messages[at + 1]["role"] == "user":
        yield f"messages.{at}: a system message must precede an assistant message or end the array"


def _directing(message: Json, body: Json, betas: str) -> Iterator[str]:
    given, allowed = message.get("output_config"), set(betas.split(","))
    if given is not None:
        if not EFFORT & allowed:
            yield ".output_config: Extra inputs are not permitted"
        if message["role"] != "system" or set(given) - {"effort"}:
            yield ".output_config: only an effort, and only on role 'system' messages"
        if given.get("effort", "low") not in EFFORTS:
            yield f".output_config.effort: Input should be one of {', '.join(EFFORTS)}"
    listed = {tool["name"] for tool in body.get("tools", [])}
    for block in [] if isinstance(message["content"], str) else message["content"]:
        if block["type"] in ("tool_addition", "tool_removal"):
            if not TOOLS & allowed:
                yield f".content: {block['type']} needs a beta"
            if block["tool"].get("name") not in listed:
                yield f".content: no tool {block['tool'].get('name')} is in tools"


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
