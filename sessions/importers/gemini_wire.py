"""Conversion of Gemini's contents to blocks, from REST (camel case) or the SDK (snake case)."""

from __future__ import annotations

import json
from collections import Counter

from compaction.render.gemini import SIGNATURE
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_block


def gemini_message(content: dict[str, Json]) -> dict[str, Json]:
    """A content as a message of ours, other fields unchanged: the model's is the assistant's."""
    role = "assistant" if content.get("role") == "model" else "user"
    rest = {name: value for name, value in content.items() if name != "parts"}
    return {**rest, "role": role, "content": gemini_blocks(content.get("parts"))}


def gemini_blocks(parts: Json) -> list[Block]:
    """The parts of a content as blocks. A signature stays with the block of its part.

    A call without an id is named by its function, and by its number if there are several in one
    content; results are in the order of their calls.
    """
    seen: Counter[str] = Counter()
    blocks: list[Block] = []
    for part in map(mapping, sequence(parts)):
        block = _block(part, seen)
        if block is None:
            continue
        signature = string(_of(part, "thoughtSignature", "thought_signature"))
        blocks.append({**block, SIGNATURE: signature} if signature else block)
    return blocks


def gemini_tools(tool: Json) -> list[Json]:
    """The functions that a tool of Gemini's declares, each with a JSON schema; another provider's
    tool as it is."""
    declared = _of(mapping(tool), "functionDeclarations", "function_declarations")
    if not isinstance(declared, list):
        return [tool]
    made: list[Json] = []
    for one in map(mapping, declared):
        schema = _of(one, "parametersJsonSchema", "parameters_json_schema")
        schema = schema or _lower(one.get("parameters")) or {"type": "object"}
        known = {"name": one.get("name"), "description": string(one.get("description"))}
        made.append({**known, "input_schema": schema})
    return made


def _of(given: dict[str, Json], *names: str) -> Json:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _lower(schema: Json) -> Json:
    """A schema with its types as JSON Schema writes them: `object`, not `OBJECT`."""
    if isinstance(schema, list):
        return [_lower(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _lower(one) for name, one in schema.items()}
    kind = schema.get("type")
    return {**made, "type": kind.lower()} if isinstance(kind, str) else made


def _block(part: dict[str, Json], seen: Counter[str]) -> Block | None:
    """The block of a part; None for an empty one."""
    if call := mapping(_of(part, "functionCall", "function_call")):
        name = string(call.get("name"))
        used = {"type": "tool_use", "id": _id(call, seen), "name": name}
        return {**used, "input": mapping(call.get("args"))}
    if given := mapping(_of(part, "functionResponse", "function_response")):
        return _result(given, seen)
    if data := mapping(_of(part, "inlineData", "inline_data")):
        kind = string(_of(data, "mimeType", "mime_type"))
        return _media(kind, {"type": "base64", "media_type": kind, "data": data.get("data")})
    if file := mapping(_of(part, "fileData", "file_data")):
        kind = string(_of(file, "mimeType", "mime_type"))
        return _media(kind, {"type": "url", "url": _of(file, "fileUri", "file_uri")})
    if part.get("text") is None:
        kept = {name: value for name, value in part.items() if value is not None}
        return blocks_of([kept])[0] if kept else None
    text = string(part["text"])
    if part.get("thought"):
        return {"type": "thinking", "thinking": text}
    return text_block(text) if text else None


def _id(given: dict[str, Json], seen: Counter[str]) -> str:
    if stated := string(given.get("id")):
        return stated
    name = string(given.get("name"))
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _result(given: dict[str, Json], seen: Counter[str]) -> Block:
    answer = mapping(given.get("response"))
    found = next((answer[one] for one in ("output", "error") if set(answer) == {one}), answer)
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    made: Block = {"type": "tool_result", "tool_use_id": _id(given, seen), "content": text}
    if media := gemini_blocks(given.get("parts")):
        made["content"] = [text_block(text), *media]
    return {**made, "is_error": True} if set(answer) == {"error"} else made


def _media(kind: str, source: Json) -> Block:
    return {"type": "image" if kind.startswith("image/") else "document", "source": source}
