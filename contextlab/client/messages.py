"""Messages in the provider's form, as the client takes and makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def failed_result(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The result of a tool call that failed."""
    content = [{"type": "text", "text": text}]
    known = {"type": "tool_result", "tool_use_id": call["id"]}
    return {**known, "content": content, "is_error": True}


def batch_of(messages: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One or several messages as a list."""
    return [dict(messages)] if isinstance(messages, Mapping) else [dict(one) for one in messages]


def message_of(reply: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """The message in a provider's response, and its usage."""
    choices = reply.get("choices")
    if choices:
        message = {k: v for k, v in choices[0]["message"].items() if v is not None}
        return message, reply.get("usage")
    return {"role": reply.get("role", "assistant"), "content": reply["content"]}, reply.get("usage")


def reported(reply: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message in a provider's response, and the fields of an append that report its call."""
    message, usage = message_of(reply)
    more = {"usage": usage, "model": reply.get("model"), "call": reply.get("id")}
    known = {name: value for name, value in more.items() if value}
    if (changes := reply.get("input_transformations")) is not None:
        known["input_transformations"] = changes  # an empty list says that nothing was dropped
    return message, known


def headers_for(context: Mapping[str, Any]) -> dict[str, Any]:
    """The headers without which a context's messages would be refused, for the SDK."""
    if any("clear_at" in message for message in context.get("messages") or ()):
        return {"extra_headers": {"anthropic-beta": ",".join(context["betas"])}}
    return {}
