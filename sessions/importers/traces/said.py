"""Messages as tracing tools write them: one reader for the forms of all of them.

Chat completions, GenAI semantic conventions (`parts`), Vercel's AI SDK (`tool-call`), LangChain
(`kwargs`, `human` and `ai`), Gemini (`function_call`), Responses items and OpenInference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compaction.context.blocks import Role
from sessions.importers.decoded import Unreadable, decode
from sessions.importers.openai_wire import assistant_blocks, content_blocks
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_block

_AROUND = ("messages", "contents", "message", "choices", "candidates", "content", "output")
"""What requests and responses call their messages, the innermost last."""

_ALONE = frozenset({"tool-call", "tool_call", "function_call", "function_call_output"})
"""Types of blocks that some forms send as messages."""

_ROLES: dict[str, Role] = {
    "ai": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "user": "user",
    "human": "user",
    "message": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "function_call": "assistant",
    "reasoning": "assistant",
    "system": "system",
    "developer": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "function": "tool",
    "ToolMessage": "tool",
    "function_call_output": "tool",
}
"""Roles and types of messages; others are names of tools."""


@dataclass(frozen=True)
class TraceMessage:
    """One message of a model call: role and wire blocks. `stored` is the digest of one from the
    store, whose blocks may be masked."""

    role: Role
    blocks: Sequence[Block]
    stored: str = field(default="", compare=False)

    @cached_property
    def digest(self) -> str:
        """Equal for messages that say the same, in whatever form they were sent.

        Thinking counts not: answers carry it, histories often do not. Neither do ids of tool calls,
        which some tools leave out of the history.
        """
        if self.stored:
            return self.stored
        said = [_essence(block) for block in self.blocks if block.get("type") != "thinking"]
        return digest_of(json.dumps([self.role, said], sort_keys=True))


def digest_of(text: str) -> str:
    """A short digest of a text, for keys."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _essence(block: Block) -> Json:
    form = block.get("type")
    if form == "text":
        return string(block.get("text")).strip()
    if form == "tool_use":
        return [block.get("name"), block.get("input")]
    if form == "tool_result":
        content = block.get("content")
        return content.strip() if isinstance(content, str) else content
    return block


def said_in(value: Json) -> list[TraceMessage]:
    """All messages of a prompt or answer: a list, one message, text, or JSON text of these."""
    value = unpacked(value)
    if isinstance(value, list):
        return [one for item in value for one in _said(item)]
    return _said(value)


def answer_in(value: Json) -> list[TraceMessage]:
    """What a model answered; text alone is the assistant's."""
    said = (one for one in said_in(value) if one.role != "system")
    return joined(TraceMessage("assistant", one.blocks) for one in said)


def joined(said: Iterable[TraceMessage]) -> list[TraceMessage]:
    """One message for neighboring ones of the assistant: some forms send each block alone."""
    answer: list[TraceMessage] = []
    for one in said:
        if answer and one.role == answer[-1].role == "assistant":
            answer[-1] = TraceMessage(one.role, [*answer[-1].blocks, *one.blocks])
        else:
            answer.append(one)
    return answer


def unpacked(value: Json) -> Json:
    """The value of JSON text; other values stay as they are."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        try:
            return decode(value.encode("utf-8", "replace"))
        except Unreadable:
            return value
    return value


def _said(item: Json) -> list[TraceMessage]:
    item = unpacked(item)
    if isinstance(item, str):
        return [TraceMessage("user", [text_block(item)])] if item else []
    given = mapping(item)
    for name in _AROUND:
        if isinstance(given.get(name), list | dict) and not _is_message(given):
            return instructions_in(given) + said_in(given[name])
    if isinstance(text := given.get("contents"), str):
        return [*instructions_in(given), TraceMessage("user", [text_block(text)])]
    if isinstance(inner := given.get("kwargs"), dict):
        kind = string((sequence(given.get("id")) or [""])[-1])
        given = {**inner, "role": inner.get("role") or inner.get("type") or kind}
    if "prompt" in given and not _is_message(given):
        return said_in(given["prompt"])
    if not _is_message(given):
        return []
    stated = string(given.get("role")) or string(given.get("type"))
    role = "tool" if given.get("tool_call_id") else _ROLES.get(stated, "tool")
    if stated not in _ROLES and "content" in given:
        # LangChain's handlers name the tool in place of a role.
        given = {"name": stated, **given}
    blocks = _blocks(given, role)
    if role == "user" and any(block["type"] == "tool_result" for block in blocks):
        role = "tool"
    return [TraceMessage(role, blocks)] if blocks else []


def instructions_in(given: dict[str, Json]) -> list[TraceMessage]:
    """The system prompt beside an array of messages."""
    config = mapping(given.get("config"))
    stated = given.get("system") or given.get("instructions") or config.get("system_instruction")
    return [TraceMessage("system", one.blocks) for one in said_in(stated)]


def _is_message(given: dict[str, Json]) -> bool:
    form = string(given.get("type"))
    return "role" in given or "toolCallId" in given or form in _ALONE | set(_ROLES)


def _blocks(given: dict[str, Json], role: Role) -> list[Block]:
    if (parts := given.get("parts")) is not None:
        return [block for part in sequence(parts) for block in [_part(mapping(part))] if block]
    form = string(given.get("type"))
    if "toolCallId" in given or form in _ALONE:
        return [block] if (block := _part(given)) else []
    if role == "tool" and "content" in given and not _has_results(given["content"]):
        call = string(given.get("tool_call_id")) or string(given.get("name"))
        return [_result(call, given["content"])]
    listed = given.get("contents", given.get("content"))
    if isinstance(listed, list):
        parts = (_part(mapping(one)) if isinstance(one, dict) else one for one in listed)
        given = {**given, "content": [part for part in parts if part]}
    calls = [_called(mapping(call)) for call in sequence(given.get("tool_calls"))]
    extra = mapping(given.get("additional_kwargs"))
    calls = calls or [_called(mapping(call)) for call in sequence(extra.get("tool_calls"))]
    if role == "assistant":
        thought = given.get("reasoning_content") or extra.get("reasoning_content")
        given = {**given, "tool_calls": None, "reasoning_content": thought}
        return assistant_blocks(given) + [call for call in calls if call["id"] not in _ids(given)]
    return content_blocks(given.get("content"))


def _ids(given: dict[str, Json]) -> set[Json]:
    """Ids of tool calls that the content names, too, as LangChain's does for Anthropic."""
    content = (mapping(one) for one in sequence(given.get("content")))
    return {one.get("id") for one in content if one.get("type") == "tool_use"}


def _has_results(content: Json) -> bool:
    forms = {string(mapping(one).get("type")) for one in sequence(content)}
    return bool(forms & {"tool-result", "tool_result"})


def _called(call: dict[str, Json]) -> Block:
    """A tool call in any of its forms."""
    call = mapping(call.get("tool_call")) or call
    function = mapping(call.get("function")) or call
    ids = (call.get(name) for name in ("toolCallId", "call_id", "id"))
    names = (function.get(name) for name in ("toolName", "name"))
    stated = (function.get(name) for name in ("input", "args", "arguments"))
    given = unpacked(next((one for one in stated if one is not None), {}))
    return {
        "type": "tool_use",
        "id": next((one for one in ids if isinstance(one, str) and one), ""),
        "name": next((one for one in names if isinstance(one, str) and one), ""),
        "input": given if isinstance(given, dict) else {"arguments": given},
    }


def _result(call: str, content: Json) -> Block:
    content = content if isinstance(content, str | list) else json.dumps(content)
    if isinstance(content, list):
        content = content_blocks(content)
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def _part(part: dict[str, Json]) -> Block | None:
    """A content part in any form; None if it is empty."""
    if "message_content" in part and "tool_call" in part:
        return _called(part)
    part = mapping(part.get("message_content")) or part
    form = string(part.get("type"))
    if (
        form in {"tool-call", "tool_call", "function_call"}
        or "toolCallId" in part
        and not _done(part)
    ):
        return _called(part)
    if call := mapping(part.get("function_call") or part.get("functionCall")):
        return _called(call)
    if reply := mapping(part.get("function_response") or part.get("functionResponse")):
        given = mapping(reply.get("response"))
        content = given["output"] if set(given) == {"output"} else reply.get("response")
        return _result(string(reply.get("id")) or string(reply.get("name")), content)
    if form in {"tool-result", "tool_call_response", "function_call_output"} or _done(part):
        names = ("toolCallId", "call_id", "id")
        call_id = next((string(part.get(name)) for name in names if part.get(name)), "")
        stated = (part.get(name) for name in ("output", "result", "response", "content"))
        found = next((one for one in stated if one is not None), "")
        inner = mapping(found)
        return _result(call_id, inner["value"] if {"type", "value"} <= set(inner) else found)
    if form in {"reasoning", "thinking"}:
        text = string(part.get("content") or part.get("text") or part.get("thinking"))
        return {**part, "type": "thinking", "thinking": text} if text else None
    if not form or form == "text":
        text = string(part.get("text")) or string(part.get("content"))
        return text_block(text) if text else None
    found_blocks = blocks_of([part])
    return found_blocks[0] if found_blocks else None


def _done(part: dict[str, Json]) -> bool:
    """Whether a part of Vercel's SDK is a tool's result."""
    return "toolCallId" in part and ("result" in part or "output" in part)
