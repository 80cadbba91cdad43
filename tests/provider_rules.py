"""What the Messages API refuses: its published rules, as sentences about a request body.

Written from the provider's side: nothing of our renderer is in here, so that it can judge it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests import provider_system

Json = dict[str, Any]

ID = re.compile(r"^[a-zA-Z0-9_-]+$")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
BREAKPOINTS = 4

REQUEST = {
    "model", "max_tokens", "messages", "system", "tools", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "metadata", "tool_choice", "thinking", "service_tier", "output_config",
    "context_management",
}  # fmt: skip
TOOL = {
    "type", "name", "description", "input_schema", "cache_control", "strict",
    "eager_input_streaming", "defer_loading", "input_examples", "allowed_callers",
}  # fmt: skip
FIELDS = {
    "text": ({"text"}, {"citations"}),
    "thinking": ({"thinking", "signature"}, set()),
    "redacted_thinking": ({"data"}, set()),
    "tool_use": ({"id", "name", "input"}, set()),
    "tool_result": ({"tool_use_id"}, {"content", "is_error"}),
    "image": ({"source"}, set()),
    "document": ({"source"}, {"title", "context", "citations"}),
    "tool_addition": ({"tool"}, set()),
    "tool_removal": ({"tool"}, set()),
}
"""Fields that a block must have, and those it may have besides `type` and `cache_control`."""

SPOKEN_BY = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
    "system": {"text", "tool_addition", "tool_removal"},
}
NO_BREAKPOINT = {"thinking", "redacted_thinking"}
EPHEMERAL = [{"type": "ephemeral"}, *({"type": "ephemeral", "ttl": t} for t in ("5m", "1h"))]


def anthropic(body: Json) -> list[str]:
    """Why the Messages API would answer 400; empty where it would not.

    Stricter than the API in one point: it merges neighbours of one role, here they are refused.
    """
    found = [f"{name}: extra inputs are not permitted" for name in body if name not in REQUEST]
    found += _utf8(body)
    if not isinstance(body.get("model"), str) or not body["model"]:
        found.append("model: field required")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        found.append("max_tokens: must be at least 1")
    found += _tools(body.get("tools", []))
    found += _system(body.get("system", []))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages: at least one message is required"]
    for index, message in enumerate(messages):
        found += _message(f"messages.{index}", message)
    if found:
        return found
    found += provider_system.wrong(body)
    spoken = provider_system.others(messages)
    if not spoken:
        return [*found, "messages: at least one message is required"]
    found += _turns(spoken)
    found += _pairs(spoken)
    if body.get("thinking", {}).get("type") == "enabled":
        found += _thinking_loop(spoken)
    count = sum(1 for _ in _breakpoints(body))
    if count > BREAKPOINTS:
        found.append(f"a maximum of 4 blocks with cache_control may be provided, found {count}")
    return found


def _utf8(body: Json) -> list[str]:
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return ["the body is no valid JSON in UTF-8"]
    return []


def _tools(tools: Any) -> Iterator[str]:
    if not isinstance(tools, list):
        yield "tools: a list is required"
        return
    names = []
    for index, tool in enumerate(tools):
        at = f"tools.{index}"
        if not isinstance(tool, dict) or not TOOL_NAME.match(str(tool.get("name", ""))):
            yield f"{at}.name: no tool name"
            continue
        names.append(tool["name"])
        yield from _cache_control(at, tool)
        if tool.get("type", "custom") != "custom":
            continue
        yield from (f"{at}.{name}: extra inputs are not permitted" for name in tool.keys() - TOOL)
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"{at}.input_schema.type: must be object"
        if not isinstance(tool.get("description", ""), str):
            yield f"{at}.description: must be a string"
    if len(names) != len(set(names)):
        yield "tools: tool names must be unique"


def _system(system: Any) -> Iterator[str]:
    if isinstance(system, str):
        return
    if not isinstance(system, list):
        yield "system: a string or a list is required"
        return
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield f"system.{index}: only text is permitted"
        else:
            yield from _block(f"system.{index}", block)


def _message(at: str, message: Any) -> Iterator[str]:
    more = {"clear_at", "output_config"}
    if not isinstance(message, dict) or set(message) - more != {"role", "content"}:
        yield f"{at}: role and content, and nothing else"
        return
    role, content = message["role"], message["content"]
    if role not in SPOKEN_BY:
        yield f"{at}.role: user, assistant or system"
        return
    if isinstance(content, str):
        if not content.strip():
            yield f"{at}: text content blocks must contain non-whitespace text"
        return
    if not isinstance(content, list) or not (content or message.get("output_config")):
        yield f"{at}: must have non-empty content"
        return
    for index, block in enumerate(content):
        if not isinstance(block, dict) or block.get("type") not in FIELDS:
            yield f"{at}.content.{index}: unknown type of block"
        elif block["type"] not in SPOKEN_BY[role]:
            yield f"{at}.content.{index}: {block['type']} is not permitted in {role} messages"
        else:
            yield from _block(f"{at}.content.{index}", block)


def _block(at: str, block: Json) -> Iterator[str]:
    form = block["type"]
    required, optional = FIELDS[form]
    allowed = required | optional | {"type", "cache_control"}
    yield from (f"{at}.{name}: field required" for name in required if name not in block)
    yield from (f"{at}.{n}: extra inputs are not permitted" for n in block if n not in allowed)
    yield from _cache_control(at, block)
    if not required <= set(block):
        return
    if form == "text" and not str(block["text"]).strip():
        yield f"{at}: text content blocks must contain non-whitespace text"
    elif form in ("text", "thinking", "redacted_thinking"):
        yield from (f"{at}.{n}: must be a string" for n in required if type(block[n]) is not str)
        if form == "thinking" and not block["signature"]:
            yield f"{at}: invalid signature in thinking block"
    elif form == "tool_use":
        if not ID.match(str(block["id"])) or not TOOL_NAME.match(str(block["name"])):
            yield f"{at}: id and name must match the pattern"
        if not isinstance(block["input"], dict):
            yield f"{at}.input: must be an object"
    elif form == "tool_result":
        yield from _result(at, block)
    elif form in ("image", "document"):
        yield from _source(at, form, block["source"])


def _cache_control(at: str, block: Json) -> Iterator[str]:
    given = block.get("cache_control")
    if given is None:
        return
    if given not in EPHEMERAL:
        yield f"{at}.cache_control: not understood"
    if block.get("type") in NO_BREAKPOINT:
        yield f"{at}.cache_control: extra inputs are not permitted"
    if block.get("type") == "text" and not block.get("text"):
        yield f"{at}: cache_control cannot be set for empty text blocks"


def _result(at: str, block: Json) -> Iterator[str]:
    if not ID.match(str(block["tool_use_id"])):
        yield f"{at}.tool_use_id: must match the pattern"
    error = block.get("is_error", False)
    if not isinstance(error, bool):
        yield f"{at}.is_error: must be a boolean"
    content = block.get("content", "")
    if error and not content:
        yield f"{at}: content cannot be empty if `is_error` is true"
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        yield f"{at}.content: a string or a list is required"
        return
    for index, part in enumerate(content):
        form = part.get("type") if isinstance(part, dict) else None
        if form not in ("text", "image", "document"):
            yield f"{at}.content.{index}: unknown type of block"
            continue
        if error and form != "text":
            yield f"{at}: all content must be type `text` if `is_error` is true"
        yield from _block(f"{at}.content.{index}", part)


def _source(at: str, form: str, source: Any) -> Iterator[str]:
    kind = source.get("type") if isinstance(source, dict) else None
    text = {"base64": "data", "url": "url", "file": "file_id", "text": "data", "content": "content"}
    kinds = {"base64", "url", "file"} | ({"text", "content"} if form == "document" else set())
    if kind not in kinds or not source.get(text[kind]):
        yield f"{at}.source: not understood"
        return
    media = source.get("media_type")
    if kind == "base64" and media not in (IMAGES if form == "image" else {"application/pdf"}):
        yield f"{at}.source.media_type: {media} is not permitted"
    if kind == "text" and media != "text/plain":
        yield f"{at}.source.media_type: {media} is not permitted"
    if kind == "base64" and not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", source["data"]):
        yield f"{at}.source.data: no base64"
    if kind == "url" and not source["url"].startswith(("http://", "https://")):
        yield f"{at}.source.url: only http and https are supported"


def _turns(messages: list[Json]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield "messages.0: the first message must use the user role"
    for index, (one, next_one) in enumerate(zip(messages, messages[1:], strict=False)):
        if one["role"] == next_one["role"]:
            yield f"messages.{index + 1}: roles must alternate"
    for index, message in enumerate(messages):
        last = message["content"][-1]
        if (
            message["role"] == "assistant"
            and isinstance(last, dict)
            and last["type"] in NO_BREAKPOINT
        ):
            yield f"messages.{index}: the final block in an assistant message cannot be `thinking`"
    if messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        text = last if isinstance(last, str) else str(last.get("text", ""))
        if text != text.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


def _of(message: Json, form: str) -> list[Json]:
    content = message["content"]
    return [] if isinstance(content, str) else [b for b in content if b["type"] == form]


def _pairs(messages: list[Json]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate([*messages, {"role": "end", "content": []}]):
        results = [block["tool_use_id"] for block in _of(message, "tool_result")]
        if missing := [one for one in waiting if one not in results]:
            yield f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"  # noqa: E501
        for one in results:
            if one not in waiting:
                yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {one}"  # noqa: E501
        if len(results) != len(set(results)):
            yield f"messages.{index}: each tool_use must have a single result"
        forms = [block["type"] for block in message["content"]] if results else []
        if "tool_result" in forms[len(results) :]:
            yield f"messages.{index}: tool_result blocks come first"
        waiting = [block["id"] for block in _of(message, "tool_use")]
        if len(waiting) != len(set(waiting)) or seen & set(waiting):
            yield f"messages.{index}: `tool_use` ids must be unique"
        seen.update(waiting)


def _thinking_loop(messages: list[Json]) -> Iterator[str]:
    """With thinking on, the newest tool loop must begin with the thinking that began it."""
    last = [message for message in messages if message["role"] == "assistant"][-1:]
    for message in last:
        if _of(message, "tool_use") and message["content"][0]["type"] not in NO_BREAKPOINT:
            yield "a final assistant message must start with a thinking block"


def _breakpoints(body: Json) -> Iterator[Json]:
    blocks = [*body.get("tools", []), *(s for s in body.get("system", []) if isinstance(s, dict))]
    for message in body["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else []
    yield from (block for block in blocks if block.get("cache_control"))
