"""Sessions of Goose: exports (JSON), and the JSONL files of older versions."""

from __future__ import annotations

import json
from collections.abc import Iterable

from compaction.context.blocks import Role
from sessions.importers.decoded import Faults, Unreadable, decode, lines
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.reported import NOTHING
from sessions.importers.wire import (
    Block,
    blocks_of,
    has_type,
    mapping,
    milliseconds,
    sequence,
    string,
    text_block,
)

FORMAT = "goose"

_FOR_PEOPLE = frozenset({"systemNotification", "actionRequired", "toolConfirmationRequest"})
"""Blocks that the client shows and never sends."""


def recognises(value: Json) -> bool:
    """Whether a document is an export: `conversation` next to `working_dir`."""
    given = mapping(value)
    return "working_dir" in given and isinstance(given.get("conversation"), list)


def recognises_lines(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether a JSONL file begins with the header of a session."""
    first = next(iter(objects), {})
    return "working_dir" in first and ("description" in first or "message_count" in first)


def read(data: bytes, name: str = "") -> Log:
    """Read an export or a file. Both have totals of tokens, but no usage of single calls."""
    writer = ArraySession("goose")
    try:
        whole = mapping(decode(data))
    except Unreadable:
        whole = {}
    if recognises(whole):
        for index, item in enumerate(map(mapping, sequence(whole.get("conversation"))), start=1):
            _take(writer, item, index)
        return _named(writer, whole, name)
    faults = Faults("Lines that are not readable JSON")
    header: dict[str, Json] = {}
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            writer.skipped.append(faults.line(line))
        elif line.number == 1:
            header = given
            writer.skipped.append(Skipped(1, "header", "not context", line.raw))
        else:
            _take(writer, given, line.number)
    log = _named(writer, header, name)
    log.problems += faults.sentences()
    return log


def _named(writer: ArraySession, header: dict[str, Json], name: str) -> Log:
    title = string(header.get("name")) or string(header.get("description"))
    model = string(mapping(header.get("model_config")).get("model_name"))
    log = writer.log(FORMAT, {"id": header.get("id"), "title": title, "model": model}, name)
    sessions, log.sessions = log.sessions, []
    return log.close(sessions)


def _take(writer: ArraySession, item: dict[str, Json], index: int) -> None:
    seen = mapping(item.get("metadata")).get("agentVisible") is not False
    blocks = [made for one in blocks_of(item.get("content")) if (made := _block(one))]
    role = string(item.get("role"))
    if role not in {"user", "assistant"}:
        writer.no_message(index)
    elif not seen or not blocks:
        writer.skipped.append(Skipped(index, role, "not context"))
    elif role == "assistant":
        message = Message("assistant", blocks, at=milliseconds(item.get("created")), line=index)
        writer.response(message, NOTHING, model="", raw=None)
    else:
        results = has_type(blocks, "tool_result")
        at = milliseconds(item.get("created"))
        sender: Role = "tool" if results else "user"
        writer.message(Message(sender, blocks, at=at, human=not results, line=index))


def _block(block: Block) -> Block | None:
    form = block.get("type")
    if form == "toolRequest":
        call = mapping(mapping(block.get("toolCall")).get("value")) or mapping(
            block.get("toolCall")
        )
        used: Block = {"type": "tool_use", "id": string(block.get("id"))}
        return {**used, "name": string(call.get("name")), "input": mapping(call.get("arguments"))}
    if form == "toolResponse":
        return _result(block)
    if form == "image":
        kind, data = block.get("mimeType"), block.get("data")
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return None if form in _FOR_PEOPLE else block


def _result(block: Block) -> Block:
    given = mapping(block.get("toolResult"))
    found = given.get("value", given.get("error"))
    inner = mapping(found)
    parts = inner.get("content", found)
    failed = given.get("status") == "error" or bool(inner.get("isError"))
    content: Json = parts
    if isinstance(parts, list):
        content = [kept for one in blocks_of(parts) if (kept := _block(one))]
        if all(one.get("type") == "text" for one in content):
            content = "\n".join(string(one.get("text")) for one in content)
    elif not isinstance(parts, str):
        content = [text_block(json.dumps(parts, ensure_ascii=False))]
    made: Block = {"type": "tool_result", "tool_use_id": string(block.get("id"))}
    return {**made, "content": content, **({"is_error": True} if failed else {})}


IMPORTER = Importer(
    name=FORMAT,
    order=17,
    title="Goose",
    files="`goose session export --format json`, session `.jsonl` of older versions",
    recognised_by="`conversation` next to `working_dir`, or a first line with `working_dir`",
    read=read,
    knows_lines=recognises_lines,
    knows_document=recognises,
    folder="~/.local/share/goose/sessions",
)
