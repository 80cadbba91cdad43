"""Render a context for the Gemini API's generateContent."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock, text_of
from compaction.render.content import Dialect, Notes, WireOf
from compaction.render.normalise import normalise
from compaction.render.prefix import ContentPart, Turn
from compaction.render.tools import as_function, tools_of

DIALECT = Dialect(ids=64, names=64)
SHOWN = frozenset({"application/pdf", "image/jpeg", "image/png", "image/webp"})
"""Media types that it accepts inline, of those that we store."""
SIGNATURE = "thought_signature"
"""The field of a stored block with the signature that came with its part."""
NO_SIGNATURE = b64encode(b"skip_thought_signature_validator").decode()
"""What the provider accepts on a call that another model made, or whose signature is not known."""


def gemini(
    blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None
) -> dict[str, Any]:
    """Return {system, tools, messages, notes} of a context; system and tools only if there are any.

    `messages` are the `contents`, `system` the parts of `systemInstruction`. Later system messages
    are sent as the user's, in their place: the provider takes one at the beginning alone. All
    results of a turn precede its other parts. The first call of each turn has a signature, as
    Gemini 3 requires; signatures are sent with the part that they came with, unless it was edited.
    """
    notes = Notes()
    made = normalise(blocks, wire_of, DIALECT, notes, earlier={})
    made.recite(ending or Ending())
    body: dict[str, Any] = {}
    if made.system:
        body["system"] = [{"text": part.wire["text"]} for part in made.system]
    tools = tools_of(made.tools, wire_of(made.tools), DIALECT, notes) if made.tools else []
    if declared := _declarations([one for tool in tools if (one := as_function(tool, notes))]):
        body["tools"] = [{"functionDeclarations": declared}]
    body["messages"] = []
    names: dict[str, str] = {}
    for turn in made.turns:
        if turn.role == "assistant":
            parts = _model(turn, wire_of, names)
            body["messages"].append({"parts": parts, "role": "model"})
        elif turn.role == "system":
            notes.add("A later system message was sent as the user's", turn.parts[0].block)
            body["messages"][-1]["parts"] += _user(turn, names, notes)
        else:
            body["messages"].append({"parts": _user(turn, names, notes), "role": "user"})
    if not made.turns:
        notes.add("There is no message yet: the provider does not accept an empty context")
    body["notes"] = notes.sentences()
    return body


def _declarations(functions: list[WireBlock]) -> list[WireBlock]:
    made: dict[str, WireBlock] = {}
    for tool in functions:
        function = tool["function"]
        name = _name(function["name"])
        known = {"description": function["description"]} if "description" in function else {}
        schema = function["parameters"]
        made.setdefault(name, {**known, "name": name, "parametersJsonSchema": schema})
    return list(made.values())


def _name(name: str) -> str:
    """A name of a function, which begins with a letter or an underscore."""
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[: DIALECT.names - 1]}"


def _model(turn: Turn, wire_of: WireOf, names: dict[str, str]) -> list[WireBlock]:
    parts: list[WireBlock] = []
    signed = False
    for part in turn.parts:
        wire = part.wire
        signature = _signature(part, wire_of)
        if wire["type"] == "tool_use":
            name = names[wire["id"]] = _name(wire["name"])
            call = {"args": wire["input"], "id": wire["id"], "name": name}
            signature = signature or ("" if signed else NO_SIGNATURE)
            made: WireBlock = {"functionCall": call}
            signed = True
        else:
            made = {"text": wire["text"]}
        parts.append({**made, "thoughtSignature": signature} if signature else made)
    return parts


def _signature(part: ContentPart, wire_of: WireOf) -> str:
    if part.block is None or part.block.replaces is not None:
        return ""
    found = wire_of(part.block).get(SIGNATURE)
    return found if isinstance(found, str) else ""


def _user(turn: Turn, names: dict[str, str], notes: Notes) -> list[WireBlock]:
    results: list[WireBlock] = []
    said: list[WireBlock] = []
    for part in turn.parts:
        if part.wire["type"] != "tool_result":
            said.append(_part(part.wire, part.block, notes))
            continue
        content = part.wire["content"]
        listed = content if isinstance(content, list) else [{"text": content, "type": "text"}]
        made = [_part(one, part.block, notes) for one in listed]
        output = "\n".join(one["text"] for one in made if "text" in one)
        if media := [one for one in made if "text" not in one]:
            notes.add("Images of results follow them in the user's message", part.block)
            said.extend(media)
            output = output or "[The result is shown after this.]"
        id = part.wire["tool_use_id"]
        response = {"error" if part.wire.get("is_error") else "output": output}
        results.append({"functionResponse": {"id": id, "name": names[id], "response": response}})
    return [*results, *said]


def _part(wire: WireBlock, block: Block | None, notes: Notes) -> WireBlock:
    """Text, or media inline; media elsewhere as their address in brackets."""
    if wire["type"] == "text":
        return {"text": wire["text"]}
    source = wire["source"]
    if source["type"] == "base64" and source["media_type"] in SHOWN:
        return {"inlineData": {"data": source["data"], "mimeType": source["media_type"]}}
    if source["type"] == "text":
        return {"text": source["data"]}
    notes.add("An image or document that cannot be sent became a bracketed word", block)
    address = source.get("url") or source.get("file_id")
    return {"text": f"[{wire['type']} {address}]" if address else text_of(wire)}
