"""Conversion of Gemini's contents to blocks, from REST (camel case) or the SDK (snake case)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from compaction.render.gemini import SIGNATURE
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_block

_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})
_OUTPUTS = ("output", "error", "result")
"""Fields that hold all of a response: the API's names, and that of google-genai."""


def gemini_messages(contents: Iterable[Json]) -> list[Json]:
    """The contents of a conversation as messages of ours, other fields unchanged; what is no
    content stays as it is. The model's contents are the assistant's.

    SDKs send each part of a streamed answer as a content of its own: together they are one turn.
    """
    made: list[Json] = []
    calls, before = _CallsOfTurn(), ""
    for content in contents:
        if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
            made.append(content)
            continue
        role = "assistant" if content.get("role") == "model" else "user"
        if role == "assistant" != before:
            calls = _CallsOfTurn()
        blocks = _blocks(content["parts"], calls)
        before = role if blocks else before
        rest = {name: value for name, value in content.items() if name != "parts"}
        made.append({**rest, "role": role, "content": blocks})
    return made


def gemini_blocks(parts: Json) -> list[Block]:
    """The parts of one content as blocks. A signature stays with the block of its part."""
    return _blocks(parts, _CallsOfTurn())


class _CallsOfTurn:
    """Names the calls of a turn and their results.

    A call without an id is named by its function, and by its number if there are several. A result
    without one, as SDKs send it, is that of the first open call of its function.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._without_call: Counter[str] = Counter()
        self._open: list[tuple[str, str]] = []

    def of_call(self, given: dict[str, Json]) -> str:
        name = string(given.get("name"))
        id = string(given.get("id")) or _numbered(name, self._seen)
        self._open.append((name, id))
        return id

    def of_result(self, given: dict[str, Json]) -> str:
        name, stated = string(given.get("name")), string(given.get("id"))
        for call in self._open:
            if call[1] == stated or (not stated and call[0] == name):
                self._open.remove(call)
                return call[1]
        return stated or _numbered(name, self._without_call)


def _numbered(name: str, seen: Counter[str]) -> str:
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _blocks(parts: Json, calls: _CallsOfTurn) -> list[Block]:
    blocks: list[Block] = []
    for part in map(mapping, sequence(parts)):
        block = _block(part, calls)
        if block is None:
            continue
        signature = string(_of(part, *_SIGNATURES))
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


def _block(part: dict[str, Json], calls: _CallsOfTurn) -> Block | None:
    """The block of a part; None for an empty one."""
    if call := mapping(_of(part, "functionCall", "function_call")):
        name = string(call.get("name"))
        used = {"type": "tool_use", "id": calls.of_call(call), "name": name}
        return {**used, "input": mapping(call.get("args"))}
    if given := mapping(_of(part, "functionResponse", "function_response")):
        return _result(given, calls)
    if data := mapping(_of(part, "inlineData", "inline_data")):
        kind = string(_of(data, "mimeType", "mime_type"))
        return _media(kind, {"type": "base64", "media_type": kind, "data": data.get("data")})
    if file := mapping(_of(part, "fileData", "file_data")):
        kind = string(_of(file, "mimeType", "mime_type"))
        return _media(kind, {"type": "url", "url": _of(file, "fileUri", "file_uri")})
    if part.get("text") is None:
        kept = {name: value for name, value in part.items() if value is not None}
        # Gemini CLI leaves the empty text out of the part that signs the end of an answer.
        return blocks_of([kept])[0] if set(kept) - _SIGNATURES else None
    text = string(part["text"])
    if part.get("thought"):
        return {"type": "thinking", "thinking": text}
    return text_block(text) if text else None


def _result(given: dict[str, Json], calls: _CallsOfTurn) -> Block:
    answer = mapping(given.get("response"))
    found = next((answer[one] for one in _OUTPUTS if set(answer) == {one}), answer)
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    made: Block = {"type": "tool_result", "tool_use_id": calls.of_result(given), "content": text}
    if media := gemini_blocks(given.get("parts")):
        made["content"] = [text_block(text), *media]
    return {**made, "is_error": True} if set(answer) == {"error"} else made


def _media(kind: str, source: Json) -> Block:
    return {"type": "image" if kind.startswith("image/") else "document", "source": source}
