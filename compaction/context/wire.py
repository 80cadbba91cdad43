"""Content blocks as agents send them: stored as bytes, read as text."""

from __future__ import annotations

import json
from typing import Any, get_args

from compaction.context.blocks import Block, BlockType, Kind, Role
from compaction.context.stubs import KEY_ARGUMENTS

WireBlock = dict[str, Any]

PREVIEW_CHARS = 140
ABOUT_CHARS = 56

_TYPES: dict[str, BlockType] = {name: name for name in get_args(BlockType)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(block: WireBlock) -> bytes:
    """Return the bytes stored for a block: its JSON, keys in their original order.

    Lone surrogates and NUL survive.
    """
    return _ENCODER.encode(block).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> WireBlock:
    """Parse a stored block; a value that is none becomes a block of type `other`."""
    found = json.loads(data.decode("utf-8", "surrogatepass"))
    block: WireBlock = found if isinstance(found, dict) else {"type": "other", "value": found}
    return block


def type_of(block: WireBlock) -> BlockType:
    """Return the type of a wire block; unknown types are kept as `other`."""
    name = str(block.get("type"))
    return "thinking" if name == "redacted_thinking" else _TYPES.get(name, "other")


def kind_of(block: WireBlock, role: Role) -> Kind:
    """Return the kind of a wire block, before files and summaries are known."""
    form = type_of(block)
    if form == "tools":
        return "tools"
    if form == "thinking":
        return "thinking"
    if form == "tool_result" or role == "tool":
        return "result"
    if form in ("image", "document"):
        return "other"
    if role == "system":
        return "system"
    return "assistant" if role == "assistant" else "user"


def _compact(value: Any) -> str:
    return _ENCODER.encode(value)


def _flatten(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) if isinstance(part, dict) else str(part) for part in content)
    return "" if content is None else _compact(content)


def _media(block: WireBlock) -> str:
    source = block.get("source")
    media = source.get("media_type", "") if isinstance(source, dict) else ""
    return f"[{block.get('type')} {media}]".replace(" ]", "]")


def text_of(block: WireBlock) -> str:
    """Return the text of a wire block that a model reads; media become a bracketed word."""
    form = type_of(block)
    if form == "text":
        return str(block.get("text", ""))
    if form == "thinking":
        return str(block.get("thinking") or "")
    if form == "tool_use":
        return _compact(block.get("input"))
    if form == "tool_result":
        return _flatten(block.get("content"))
    if form in ("image", "document"):
        return _media(block)
    if form == "tools":
        return _compact(block.get("tools"))
    return _compact(block)


def block_of(block: Block) -> WireBlock:
    """Return the wire form of a replacement."""
    if block.type == "tool_use":
        return {
            "type": "tool_use",
            "id": block.tool_call,
            "name": block.tool,
            "input": _object(block.text),
        }
    if block.type == "tool_result":
        return {"type": "tool_result", "tool_use_id": block.tool_call, "content": block.text}
    return {"type": "text", "text": block.text}


def _object(text: str) -> Any:
    """Parse a tool input; a text that is not a JSON object is wrapped in one."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"offloaded": text}


def media_count(block: WireBlock) -> int:
    """Count the images and documents in a block."""
    if type_of(block) in ("image", "document"):
        return 1
    content = block.get("content")
    if type_of(block) == "tool_result" and isinstance(content, list):
        return sum(media_count(part) for part in content if isinstance(part, dict))
    return 0


def about(given: Any) -> str:
    """Describe a tool call by its main argument on one line; long paths keep their end."""
    if not isinstance(given, dict):
        return _line(_compact(given), ABOUT_CHARS)
    values = [given[key] for key in KEY_ARGUMENTS if isinstance(given.get(key), (str, int))]
    if not values:
        return _line(_compact(given), ABOUT_CHARS) if given else ""
    text = _line(str(values[0]), PREVIEW_CHARS)
    is_path = "/" in text and " " not in text
    return "…" + text[1 - ABOUT_CHARS :] if is_path and len(text) > ABOUT_CHARS else text


def preview(block: WireBlock, call: str = "") -> str:
    """Describe a block in one line of at most 140 code points.

    `call` describes the tool call that a result answers.
    """
    form = type_of(block)
    if form == "tool_use":
        text = f"{block.get('name', 'tool')} {about(block.get('input'))}"
    elif form == "tools":
        tools = block.get("tools")
        listed = tools if isinstance(tools, list) else []
        names = [_tool_name(tool) for tool in listed if isinstance(tool, dict)]
        text = f"{len(names)} tool definitions: {', '.join(names)}"
    else:
        text = text_of(block)[: PREVIEW_CHARS * 8]
        text = f"{call} → {text}" if call else text
    return _line(text, PREVIEW_CHARS)


def _tool_name(tool: dict[str, Any]) -> str:
    function = tool.get("function")
    inner = function.get("name") if isinstance(function, dict) else None
    return str(tool.get("name") or inner or "?")


def _line(text: str, width: int) -> str:
    line = " ".join(text[: width * 8].split())
    line = line.replace("\x00", "␀").encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= width else line[: width - 1] + "…"
