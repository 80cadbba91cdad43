"""Render a context for OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock
from compaction.render.content import Dialect, Notes, WireOf
from compaction.render.normalise import normalise
from compaction.render.prefix import ContentPart, Turn, is_system
from compaction.render.tools import as_function, tools_of

DIALECT = Dialect(ids=40, names=64)


def openai(
    blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None
) -> dict[str, Any]:
    """Return {messages, tools, notes} of a context; tools only if there are any.

    The system prompt is the first message; later system messages stay where they are, after the
    user's, since a prompt that grew at its beginning would be in no cache. Arguments are the JSON
    of a call's input. A tool message accepts text only, so images of results follow in a user
    message.
    """
    notes = Notes()
    made = normalise(blocks, wire_of, DIALECT, notes, earlier={})
    made.recite(ending or Ending())
    body: dict[str, Any] = {"messages": [], "notes": []}
    if made.system:
        body["messages"].append(_system(made.system))
    tools = tools_of(made.tools, wire_of(made.tools), DIALECT, notes) if made.tools else []
    if functions := [one for tool in tools if (one := as_function(tool, notes))]:
        body["tools"] = functions
    for turn in made.turns:
        if turn.role == "assistant":
            body["messages"].append(_assistant(turn))
        else:
            body["messages"].extend(_user(turn, notes))
    body["notes"] = notes.sentences()
    return body


def _system(parts: Iterable[ContentPart]) -> WireBlock:
    return {"content": "\n\n".join(part.wire["text"] for part in parts), "role": "system"}


def _assistant(turn: Turn) -> WireBlock:
    calls = [_call(part.wire) for part in turn.parts if part.wire["type"] == "tool_use"]
    said = [_part(part.wire) for part in turn.parts if part.wire["type"] == "text"]
    made: WireBlock = {"content": _content(said) if said else None, "role": "assistant"}
    return {**made, "tool_calls": calls} if calls else made


def _call(wire: WireBlock) -> WireBlock:
    given = json.dumps(wire["input"], ensure_ascii=False, separators=(",", ":"))
    function = {"arguments": given, "name": wire["name"]}
    return {"function": function, "id": wire["id"], "type": "function"}


def _user(turn: Turn, notes: Notes) -> list[WireBlock]:
    """Build the tool messages, the system message, then one user message with everything else."""
    messages: list[WireBlock] = []
    said: list[WireBlock] = []
    system: list[ContentPart] = []
    for part in turn.parts:
        if part.block is not None and is_system(part.block):
            system.append(part)
            continue
        if part.wire["type"] != "tool_result":
            said.append(_part(part.wire))
            continue
        content = part.wire["content"]
        if not isinstance(content, str):
            shown = [_part(one) for one in content]
            text = [one for one in shown if one["type"] == "text"]
            if others := [one for one in shown if one["type"] != "text"]:
                notes.add("Images of results follow in a user message", part.block)
                said.extend(others)
            content = _content(text) if text else "[The result is shown in the next message.]"
        messages.append(
            {"content": content, "role": "tool", "tool_call_id": part.wire["tool_use_id"]}
        )
    messages.extend([_system(system)] if system else [])
    return [*messages, {"content": _content(said), "role": "user"}] if said else messages


def _content(parts: list[WireBlock]) -> str | list[WireBlock]:
    """Return a single text as a string, which every server accepts; otherwise the parts."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        text: str = parts[0]["text"]
        return text
    return parts


def _part(wire: WireBlock) -> WireBlock:
    if wire["type"] == "text":
        return wire
    source = wire["source"]
    kind, name = source["type"], wire.get("title") or "document.pdf"
    url = f"data:{source['media_type']};base64,{source['data']}" if kind == "base64" else ""
    if wire["type"] == "image" and kind != "file":
        return {"image_url": {"url": url or source["url"]}, "type": "image_url"}
    if kind == "base64":
        return {"file": {"file_data": url, "filename": name}, "type": "file"}
    content = source.get("data") or source.get("url") or source.get("file_id")
    return {"text": f"[{wire['type']} {name}]\n{content}", "type": "text"}
