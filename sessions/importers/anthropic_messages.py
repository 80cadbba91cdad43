"""Anthropic messages: arrays, request bodies, and objects that wrap either."""

from __future__ import annotations

from typing import Literal

from sessions.importers.decoded import NotALog
from sessions.importers.importer import Importer
from sessions.importers.message_array import (
    ArraySession,
    Conversation,
    conversation_of,
    document,
)
from sessions.importers.records import Json, Log, Message
from sessions.importers.reported import NOTHING, Reported, anthropic_usage, cline_usage
from sessions.importers.wire import (
    Block,
    blocks_of,
    has_type,
    mapping,
    milliseconds,
    sequence,
    string,
)

FORMAT = "anthropic-messages"

_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"}
)
_ROLES = frozenset({"user", "assistant", "system"})


def recognises(value: Json) -> bool:
    """Whether a document's messages have Anthropic's blocks or request fields."""
    found = conversation_of(value)
    if found is None:
        return False
    messages = [mapping(item) for item in found.messages]
    if any(string(m.get("role")) not in _ROLES or _is_openai(m) for m in messages if "role" in m):
        return False
    if "system" in found.around or "system_prompt" in found.around:
        return True
    blocks = (block for m in messages for block in sequence(m.get("content")))
    return any(string(mapping(block).get("type")) in _BLOCKS for block in blocks)


def _is_openai(message: dict[str, Json]) -> bool:
    return any(message.get(name) for name in ("tool_calls", "function_call", "tool_call_id"))


def read(data: bytes, name: str = "") -> Log:
    """Read a document. Raises NotALog without messages."""
    found = conversation_of(document(data, "an array of Anthropic messages"))
    if found is None:
        raise NotALog("The file contains no array of messages. Expected [{role, content}, …].")
    writer = ArraySession("")
    _preface(writer, found)
    for index, item in enumerate(found.messages, start=1):
        if isinstance(item, dict) and isinstance(item.get("role"), str):
            _message(writer, item, index, string(found.around.get("model")))
        else:
            writer.no_message(index)
    log = writer.log(FORMAT, found.around, name)
    return log


def _preface(writer: ArraySession, found: Conversation) -> None:
    tools = sequence(found.around.get("tools"))
    if tools:
        writer.message(Message("system", [{"type": "tools", "tools": tools}]))
    system = found.around.get("system") or found.around.get("system_prompt")
    if blocks := blocks_of(system):
        writer.message(Message("system", blocks, kind="system"))


def _message(writer: ArraySession, item: dict[str, Json], index: int, model: str) -> None:
    blocks = blocks_of(item.get("content"))
    at = milliseconds(item.get("timestamp") or item.get("ts") or item.get("created_at"))
    role = string(item.get("role"))
    if role == "assistant":
        own = string(item.get("model")) or string(mapping(item.get("modelInfo")).get("id"))
        reported, raw = _usage(item)
        message = Message("assistant", blocks, at=at, line=index)
        writer.response(message, reported, model=own or model, raw=raw)
        return
    speaker: Literal["system", "user"] = "system" if role in {"system", "developer"} else "user"
    human = speaker == "user" and bool(blocks) and _is_typed(blocks)
    kind: Literal["system"] | None = "system" if speaker == "system" else None
    writer.message(Message(speaker, blocks, at=at, human=human, kind=kind, line=index))


def _is_typed(blocks: list[Block]) -> bool:
    return not has_type(blocks, "tool_result")


def _usage(item: dict[str, Json]) -> tuple[Reported, Json]:
    if isinstance(raw := item.get("usage"), dict):
        return anthropic_usage(raw), raw
    if isinstance(raw := item.get("metrics"), dict):
        return cline_usage(raw), raw
    return NOTHING, None


IMPORTER = Importer(
    name=FORMAT,
    order=70,
    title="arrays of Anthropic messages",
    files="array, request body, wrapper",
    recognised_by="`messages` with Anthropic's blocks, or next to `system`",
    read=read,
    knows_document=recognises,
)
