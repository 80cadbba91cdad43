"""Items of OpenAI's Responses API as messages of blocks."""

from __future__ import annotations

from typing import Any

from contextlab.client.forms.form import Json, arguments_of
from contextlab.client.shown import blocks_of

KEPT: dict[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "reasoning": ("id", "summary", "encrypted_content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "agent_message": ("author", "recipient", "content"),
}
"""Fields of items that are the same in an answer and when an agent sends it back."""
BY_PROVIDER = frozenset(
    {"web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call"}
)
"""Items of tools that the provider runs, as our server renders them."""
_BESIDE = {
    "message": ("phase",),
    "function_call": ("namespace",),
    "custom_tool_call": ("type",),
    "agent_message": ("type", "author", "recipient"),
}
"""Fields that have no place in a block."""
_ROLES = {"developer": "system", "system": "system", "assistant": "assistant"}


def items_of(given: Any) -> list[Json]:
    """The items of a request's `input`, which may be a text."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    items = given if isinstance(given, list) else []
    return [item for item in items if isinstance(item, dict)]


def type_of(item: Json) -> str:
    """The type of an item; a message may leave it out."""
    return str(item.get("type") or "message")


def kept(item: Json) -> Json:
    """An item without what only answers have, or only requests."""
    form = type_of(item)
    made = {name: item[name] for name in KEPT.get(form, item) if item.get(name) is not None}
    if form == "message" and isinstance(made.get("content"), list):
        made["content"] = [_sent(part) for part in made["content"] if isinstance(part, dict)]
    return {**made, "type": form}


def beside(item: Json) -> Json:
    """The fields of an item that have no place in a block."""
    names = _BESIDE.get(type_of(item), ())
    return {name: item[name] for name in names if item.get(name) is not None}


def message_of(item: Json) -> Json | None:
    """An item as a message of blocks; None if we do not know its type."""
    form, given = type_of(item), kept(item)
    if form == "message":
        role, blocks = _ROLES.get(str(item.get("role")), "user"), _parts(given.get("content"))
    elif form == "agent_message":
        role, blocks = "user", _parts(given.get("content"))
    elif form == "reasoning":
        texts = [str(part.get("text") or "") for part in given.get("summary") or ()]
        thought = {**given, "type": "thinking", "thinking": "\n\n".join(texts)}
        role, blocks = "assistant", [thought]
    elif form in ("function_call", "custom_tool_call"):
        role, blocks = "assistant", [_call(given)]
    elif form in KEPT:
        output = given.get("output")
        content = output if isinstance(output, str) else _parts(output)
        result = {"tool_use_id": str(given.get("call_id") or ""), "content": content}
        role, blocks = "user", [{"type": "tool_result", **result}]
    elif form in BY_PROVIDER:
        role, blocks = "assistant", [given]
    else:
        return None
    blocks = blocks or [{"type": "text", "text": ""}]
    if more := beside(item):
        blocks[0] = {**blocks[0], "item": more}
    return {"role": role, "content": blocks}


def _call(given: Json) -> Json:
    custom = given["type"] == "custom_tool_call"
    input = {"input": given.get("input")} if custom else arguments_of(given.get("arguments"))
    known = {"id": str(given.get("call_id") or ""), "name": str(given.get("name") or "")}
    return {"type": "tool_use", **known, "input": input}


def _parts(content: Any) -> list[Json]:
    return [_part(_sent(part)) for part in blocks_of(content)]


def _part(part: Json) -> Json:
    if part.get("type") in ("input_text", "output_text"):
        return {"type": "text", "text": str(part.get("text") or "")}
    if part.get("type") == "input_image":
        return {"type": "image", "source": {"type": "url", "url": part.get("image_url")}}
    return part


def _sent(part: Json) -> Json:
    """A part of a message without what only answers have."""
    form = part.get("type")
    if form == "refusal":
        return {"type": "output_text", "text": part.get("refusal")}
    if form in ("input_text", "output_text"):
        return {"type": form, "text": part.get("text")}
    if form == "input_image" and part.get("file_id"):
        return {"type": "image", "source": {"type": "file", "file_id": part["file_id"]}}
    if form != "input_file":
        return part
    if part.get("file_data"):
        return {"type": "document", "title": part.get("filename"), "file": part}
    if part.get("file_id"):
        return {"type": "document", "source": {"type": "file", "file_id": part["file_id"]}}
    return {"type": "document", "source": {"type": "url", "url": part.get("file_url")}}
