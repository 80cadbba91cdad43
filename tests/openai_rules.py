"""What chat completions refuse: the published rules, as sentences about a request body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

FUNCTION_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
FUNCTION = {"name", "description", "parameters", "strict"}
PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "file"},
    "tool": {"text"},
}


def openai(body: Json) -> list[str]:
    """Why the API would answer 400; empty where it would not."""
    found = list(_tools(body))
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        found.append("the body is no valid JSON in UTF-8")
    if not body.get("messages"):
        return [*found, "messages: at least one is required"]
    waiting: list[str] = []
    for index, message in enumerate([*body["messages"], {"role": "end"}]):
        at = f"messages.{index}"
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                found.append(f"{at}: a tool message must answer one of the tool_calls before it")
                continue
            waiting.remove(message["tool_call_id"])
        elif waiting:
            found.append(f"{at}: tool_calls must be followed by tool messages: {waiting}")
        found += _message(at, message)
        waiting = waiting if message["role"] == "tool" else []
        waiting += [call["id"] for call in message.get("tool_calls", [])]
    return found


def _tools(body: Json) -> Iterator[str]:
    names = []
    for index, tool in enumerate(body.get("tools", [])):
        function = tool.get("function", {})
        names.append(function.get("name"))
        if tool.get("type") != "function" or not FUNCTION_NAME.match(str(function.get("name", ""))):
            yield f"tools.{index}: no function"
        if set(tool) != {"type", "function"} or not set(function) <= FUNCTION:
            yield f"tools.{index}: unknown field"
    if len(names) != len(set(names)):
        yield "tools: names must be unique"
    if "tools" in body and not body["tools"]:
        yield "tools: array too short"


def _message(at: str, message: Json) -> Iterator[str]:
    role = message["role"]
    if role == "assistant":
        yield from _assistant(at, message)
    elif role in PARTS:
        fields = {"role", "content"} | ({"tool_call_id"} if role == "tool" else set())
        yield from _parts(at, message, fields, PARTS[role])
    elif role != "end":
        yield f"{at}.role: not understood"


def _assistant(at: str, message: Json) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        yield f"{at}.tool_calls: array too short"
    if message.get("content") is not None or not calls:
        yield from _parts(at, message, {"role", "content", "tool_calls"}, {"text"})
    for call in calls or []:
        function = call.get("function", {})
        if set(call) != {"id", "type", "function"} or set(function) != {"name", "arguments"}:
            yield f"{at}.tool_calls: fields"
            continue
        if not 1 <= len(call["id"]) <= 40 or not FUNCTION_NAME.match(function["name"]):
            yield f"{at}.tool_calls: id of 1 to 40 characters, name of the pattern"
        if not isinstance(json.loads(function["arguments"]), dict):
            yield f"{at}.tool_calls.arguments: the JSON of an object"
    if calls and len({call["id"] for call in calls}) != len(calls):
        yield f"{at}.tool_calls: ids must be unique"


def _parts(at: str, message: Json, allowed: set[str], forms: set[str]) -> Iterator[str]:
    yield from (f"{at}.{name}: unknown field" for name in message if name not in allowed)
    content = message.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{at}.content: a string or parts"
        return
    for index, part in enumerate(content):
        form = part.get("type")
        if form not in forms or set(part) != {"type", form}:
            yield f"{at}.content.{index}: {form} is not permitted here"
        elif form == "image_url":
            url = part["image_url"].get("url", "")
            if not url.startswith(("https://", "http://", "data:image/")):
                yield f"{at}.content.{index}: no image address"
