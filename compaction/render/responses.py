"""Render a context for OpenAI's Responses API, with the history in the request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock
from compaction.render.content import Dialect, Notes, WireOf, sendable
from compaction.render.normalise import normalise
from compaction.render.prefix import ContentPart, Turn, is_system
from compaction.render.tools import tools_of

BY_PROVIDER = frozenset(
    {"web_search_call", "file_search_call", "image_generation_call", "code_interpreter_call"}
)
"""Items of tools that the provider runs. They are valid after the reasoning that led to them."""

ENCRYPTED = "encrypted_content"
"""What only the provider can read in a message between agents."""

DIALECT = Dialect(
    ids=64, names=64, thinking="encrypted", own=BY_PROVIDER, given=frozenset({ENCRYPTED})
)
CUSTOM, AGENT_MESSAGE = "custom_tool_call", "agent_message"


def responses(
    blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None
) -> dict[str, Any]:
    """Return {messages, tools, notes} of a context: `messages` are the items of `input`.

    Each system message before the conversation is a developer message. A block's `item` holds the
    fields of its item that have no place in a block. Reasoning is sent only if it is encrypted and
    followed by what the model did after it. Items have no ids, except for reasoning: the
    provider would look for them among what it stored.
    """
    notes = Notes()
    made = normalise(blocks, wire_of, DIALECT, notes, earlier={})
    made.recite(ending or Ending())
    items = [_developer(list(parts)) for _, parts in groupby(made.system, key=_message)]
    custom: set[str] = set()
    for turn in made.turns:
        if turn.role == "assistant":
            items += _assistant(turn, wire_of, custom, notes)
        else:
            items += _user(turn, wire_of, custom, notes)
    body: dict[str, Any] = {"messages": items}
    if made.tools:
        body["tools"] = _tools(made.tools, wire_of(made.tools), notes)
    return {**body, "notes": notes.sentences()}


def _message(part: ContentPart) -> int:
    return part.block.message if part.block is not None else 0


def _developer(parts: list[ContentPart]) -> WireBlock:
    return {"content": [_input(part.wire) for part in parts], "role": "developer"}


def _item(part: ContentPart, wire_of: WireOf) -> WireBlock:
    """What the item of an unedited block has besides."""
    if part.block is None or part.block.replaces is not None:
        return {}
    kept = wire_of(part.block).get("item")
    return kept if isinstance(kept, dict) else {}


def _assistant(turn: Turn, wire_of: WireOf, custom: set[str], notes: Notes) -> Iterator[WireBlock]:
    alone = True
    for index, part in enumerate(turn.parts):
        form = part.wire["type"]
        if form == "thinking":
            alone = not _is_followed(turn.parts[index:])
            if alone:
                notes.add("Reasoning was left out: what followed it is gone", part.block)
            else:
                yield {**part.wire, "type": "reasoning"}
        elif form == "text":
            content = [{"text": part.wire["text"], "type": "output_text"}]
            yield {**_item(part, wire_of), "content": content, "role": "assistant"}
        elif form == "tool_use":
            yield _call(part, _item(part, wire_of), custom)
        elif alone:
            notes.add("A call of the provider's own tool was left out with its reasoning")
        else:
            yield part.wire


def _is_followed(parts: list[ContentPart]) -> bool:
    """Whether reasoning is followed by the block that followed it, unedited."""
    for before, part in zip(parts, parts[1:], strict=False):
        if before.block is None or part.block is None or part.block.replaces is not None:
            return False
        if part.block.position != before.block.position + 1:
            return False
        if part.wire["type"] != "thinking":
            return True
    return False


def _call(part: ContentPart, item: WireBlock, custom: set[str]) -> WireBlock:
    wire = part.wire
    known = {"call_id": wire["id"], "name": wire["name"]}
    given = wire["input"].get("input")
    if item.get("type") == CUSTOM and isinstance(given, str):
        custom.add(wire["id"])
        return {**item, **known, "input": given}
    arguments = json.dumps(wire["input"], ensure_ascii=False, separators=(",", ":"))
    return {**item, **known, "arguments": arguments, "type": "function_call"}


def _user(turn: Turn, wire_of: WireOf, custom: set[str], notes: Notes) -> list[WireBlock]:
    """Build the outputs of tools, the developer message, then what agents and the user say."""
    made: list[WireBlock] = []
    said: list[ContentPart] = []
    system = [part for part in turn.parts if part.block is not None and is_system(part.block)]
    for part in turn.parts:
        if part.wire["type"] == "tool_result":
            made.append(_output(part.wire, custom))
        elif part not in system:
            said.append(part)
    made += [_developer(system)] if system else []
    return [*made, *_said(said, wire_of, notes)]


def _said(said: list[ContentPart], wire_of: WireOf, notes: Notes) -> Iterator[WireBlock]:
    """Each message of an agent as an item of its own, and what else stands together as one."""
    of_user: list[WireBlock] = []
    for _, group in groupby(said, key=_message):
        parts = list(group)
        item = _item(parts[0], wire_of)
        if item.get("type") == AGENT_MESSAGE:
            if of_user:
                yield {"content": of_user, "role": "user"}
                of_user = []
            yield {**item, "content": [_input(part.wire) for part in parts]}
            continue
        for part in parts:
            if part.wire["type"] == ENCRYPTED:
                notes.add("Encrypted content was left out without its agent's message", part.block)
            else:
                of_user.append({**_input(part.wire), **_item(part, wire_of)})
    if of_user:
        yield {"content": of_user, "role": "user"}


def _output(wire: WireBlock, custom: set[str]) -> WireBlock:
    content = wire["content"]
    output = content if isinstance(content, str) else [_input(one) for one in content]
    form = f"{CUSTOM if wire['tool_use_id'] in custom else 'function_call'}_output"
    return {"call_id": wire["tool_use_id"], "output": output, "type": form}


def _input(wire: WireBlock) -> WireBlock:
    if wire["type"] == ENCRYPTED:
        return wire
    if wire["type"] == "text":
        return {"text": wire["text"], "type": "input_text"}
    source = wire["source"]
    kind, is_image = source["type"], wire["type"] == "image"
    if kind == "file":
        return {"file_id": source["file_id"], "type": "input_image" if is_image else "input_file"}
    if kind == "text":
        return {"text": source["data"], "type": "input_text"}
    if kind == "url":
        field = "image_url" if is_image else "file_url"
        return {field: source["url"], "type": "input_image" if is_image else "input_file"}
    url = f"data:{source['media_type']};base64,{source['data']}"
    if is_image:
        return {"image_url": url, "type": "input_image"}
    name = wire.get("title") or "document.pdf"
    return {"file_data": url, "filename": name, "type": "input_file"}


def _tools(block: Block, wire: WireBlock, notes: Notes) -> list[WireBlock]:
    """The agent's own tools unchanged, and those in other forms as functions; each name once."""
    made: dict[str, WireBlock] = {}
    for tool in wire["tools"] if isinstance(wire.get("tools"), list) else []:
        if _is_ours(tool):
            made.setdefault(str(tool.get("name") or tool["type"]), sendable(tool))
            continue
        for found in tools_of(block, {"tools": [tool]}, DIALECT, notes):
            names = ("description", "name", "strict")
            kept = {name: found[name] for name in names if name in found}
            schema = found.get("input_schema", {"type": "object"})
            function = {"strict": False, **kept, "parameters": schema, "type": "function"}
            made.setdefault(found["name"], function)
    return list(made.values())


def _is_ours(tool: Any) -> bool:
    """Whether a tool is in this API's form."""
    if not isinstance(tool, dict) or "function" in tool or "input_schema" in tool:
        return False
    return isinstance(tool.get("type"), str)
