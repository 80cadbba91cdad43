"""Chat-completions messages: arrays, request bodies, and recorded request-response pairs."""

from __future__ import annotations

from sessions.importers.decoded import NotALog
from sessions.importers.importer import Importer
from sessions.importers.message_array import (
    ArraySession,
    Conversation,
    conversation_of,
    document,
)
from sessions.importers.naming import name_by_file, stem_of
from sessions.importers.openai_wire import CallIds, assistant_blocks, content_blocks, result_block
from sessions.importers.records import Json, Log, Message
from sessions.importers.reported import NOTHING, openai_usage
from sessions.importers.wire import mapping, milliseconds, sequence, string

FORMAT = "openai-messages"

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def recognises(value: Json) -> bool:
    """Whether a document contains messages with this API's roles."""
    found = conversation_of(value)
    if found is None:
        return False
    roles = [item["role"] for item in found.messages if isinstance(item, dict) and "role" in item]
    return all(map(is_role, roles))


def is_role(value: Json) -> bool:
    """Whether a value is a role of this API."""
    return string(value) in _ROLES


def read(data: bytes, name: str = "") -> Log:
    """Read a document. Raises NotALog without messages."""
    found = conversation_of(document(data, "an array of chat-completions messages"))
    if found is None:
        raise NotALog("The file contains no array of messages. Expected [{role, content}, …].")
    writer = ArraySession("")
    _preface(writer, found)
    reader = MessageReader(writer, string(found.around.get("model")))
    for index, item in enumerate(found.messages, start=1):
        if isinstance(item, dict) and isinstance(item.get("role"), str):
            reader.take(item, index)
        else:
            writer.no_message(index)
    _answer(reader, found)
    log = writer.log(FORMAT, found.around, name)
    if log.sessions[0].external_id == "" and mapping(found.around.get("response")):
        # One file per call: those of a session begin alike and have names that count.
        stem = stem_of(name).rstrip("0123456789.").rstrip("-_ ") or "calls"
        name_by_file(log.sessions[0], stem, FORMAT)
        log.sessions[0].title = stem
    window = found.around.get("context_window")
    if isinstance(window, int) and 0 < window < 10**9:
        log.sessions[0].window = window
    return log


def _preface(writer: ArraySession, found: Conversation) -> None:
    tools = sequence(found.around.get("tools")) or sequence(found.around.get("functions"))
    if tools:
        writer.message(Message("system", [{"type": "tools", "tools": tools}]))


def _answer(reader: MessageReader, found: Conversation) -> None:
    """Add the response that a recorder stored with the request, if any."""
    # OpenHands rewrites calls of models without tools: the raw answer is what the history repeats.
    rewritten = mapping(found.around.get("response"))
    response = mapping(found.around.get("raw_response")) or rewritten
    choices = sequence(response.get("choices") or found.around.get("choices"))
    answer = mapping(mapping(choices[0]).get("message")) if choices else {}
    if answer:
        stop = sequence(mapping(found.around.get("kwargs")).get("stop"))
        if "</function" in stop and "<function=" in (text := string(answer.get("content"))):
            answer = {**answer, "content": f"{text}</function>"}
        raw = response.get("usage") or rewritten.get("usage") or found.around.get("usage")
        own = {"usage": raw, "model": response.get("model"), "created": response.get("created")}
        reader.take({**own, **answer, "role": "assistant"}, len(found.messages) + 1)


class MessageReader:
    """Writes chat-completions messages one at a time."""

    def __init__(self, writer: ArraySession, model: str = "") -> None:
        self._writer = writer
        self._model = model
        self._ids = CallIds()

    def take(self, item: dict[str, Json], index: int) -> None:
        """Write one message."""
        at = milliseconds(item.get("timestamp") or item.get("created_at") or item.get("created"))
        role = string(item.get("role"))
        if role == "assistant":
            self._assistant(item, index, at)
        elif role in {"tool", "function"}:
            block = result_block(item, self._answered(item))
            self._writer.message(Message("tool", [block], at=at, line=index))
        elif role in {"system", "developer"}:
            blocks = content_blocks(item.get("content"))
            self._writer.message(Message("system", blocks, at=at, kind="system", line=index))
        else:
            blocks = content_blocks(item.get("content"))
            self._writer.message(Message("user", blocks, at=at, human=bool(blocks), line=index))

    def _assistant(self, item: dict[str, Json], index: int, at: int | None) -> None:
        blocks = assistant_blocks(item)
        self._ids.asked(blocks, index)
        raw = item.get("usage")
        reported = openai_usage(raw) if isinstance(raw, dict) else NOTHING
        model = string(item.get("model")) or self._model
        message = Message("assistant", blocks, at=at, line=index)
        self._writer.response(message, reported, model=model, raw=raw)

    def _answered(self, item: dict[str, Json]) -> str:
        return self._ids.answered(string(item.get("tool_call_id")) or string(item.get("name")))


IMPORTER = Importer(
    name=FORMAT,
    order=80,
    title="arrays of OpenAI messages",
    files="array, request body, recorded call",
    recognised_by="`messages` with chat-completions roles",
    read=read,
    knows_document=recognises,
)
