"""What the Responses API refuses where the history is in the request, as sentences about a body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "developer": {"input_text"},
    "assistant": {"output_text"},
}
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
BY_PROVIDER = {"web_search_call"}


def responses(body: Json) -> list[str]:
    """Why the API would answer 400; empty where it would not."""
    found = list(_pairs(body["input"]))
    for index, item in enumerate(body["input"]):
        found += [f"input.{index}: {wrong}" for wrong in _item(item)]
    found += _reasoning(body["input"])
    added = [item["tools"] for item in body["input"] if item.get("type") == "additional_tools"]
    tools = [tool for listed in (body.get("tools") or [], *added) for tool in listed]
    names = [tool.get("name") or tool["type"] for tool in tools]
    if len(names) != len(set(names)):
        found.append("tools: names must be unique")
    return found


def _pairs(items: list[Json]) -> Iterator[str]:
    waiting: dict[str, str] = {}
    for item in items:
        form, call = str(item.get("type") or "message"), item.get("call_id")
        if form in CALLS:
            if not isinstance(call, str) or not 1 <= len(call) <= 64 or call in waiting:
                yield f"call_id {call}: 1 to 64 characters, once"
            waiting[str(call)] = f"{form}_output"
        elif form.endswith("_output") and waiting.pop(str(call), None) != form:
            yield f"No tool call found for function call output with call_id {call}."
    yield from (f"No tool output found for function call {call}." for call in waiting)


def _item(item: Json) -> Iterator[str]:
    form = item.get("type", "message")
    if form == "message":
        parts = item.get("content")
        if not isinstance(parts, str):
            yield from _content(parts, PARTS[item["role"]])
    elif form in CALLS:
        given = item.get(CALLS[form])
        if not isinstance(given, str):
            yield f"{CALLS[form]}: text is required"
        elif form == "function_call" and not isinstance(json.loads(given), dict):
            yield "arguments: the JSON of an object"
    elif form.endswith("_output"):
        if not isinstance(item.get("output"), str):
            yield from _content(item.get("output"), PARTS["user"])
    elif form in _OWN:
        yield from _OWN[form](item)
    elif form not in {"reasoning", *BY_PROVIDER}:
        yield f"type {form}: unknown"


def _added(item: Json) -> Iterator[str]:
    if item.get("role") != "developer" or not isinstance(item.get("tools"), list):
        yield "the developer's list of tools is required"


def _between_agents(item: Json) -> Iterator[str]:
    if not all(isinstance(item.get(name), str) for name in ("author", "recipient")):
        yield "author and recipient are required"
    yield from _content(item.get("content"), {"input_text", "encrypted_content"})


_OWN = {"additional_tools": _added, "agent_message": _between_agents}
"""Items that Codex sends and the API's documentation does not name."""


def _content(parts: Any, forms: set[str]) -> Iterator[str]:
    if not isinstance(parts, list) or not parts:
        yield "content: parts are required"
        return
    yield from (f"content: {one.get('type')} is not permitted" for one in parts
                if one.get("type") not in forms)  # fmt: skip


def _reasoning(items: list[Json]) -> Iterator[str]:
    """Reasoning needs the item that followed it, and a provider's own call the one before it."""
    reasoned = False
    for item, after in zip(items, [*items[1:], {"role": "user"}], strict=False):
        form, following = item.get("type"), after.get("type")
        if form == "reasoning":
            if not isinstance(item.get("encrypted_content"), str):
                yield "reasoning: not found; items are not persisted"
            if after.get("role") not in (None, "assistant") or str(following).endswith("_output"):
                yield "reasoning was provided without its required following item."
            reasoned = True
        elif form in BY_PROVIDER and not reasoned:
            yield f"{form} was provided without its required 'reasoning' item."
        elif item.get("role") in ("user", "developer") or str(form).endswith("_output"):
            reasoned = False
