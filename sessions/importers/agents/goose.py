"""Sessions of Goose: exports (JSON), and the JSONL files of older versions."""

from __future__ import annotations

import json
from collections.abc import Iterable

from compaction.context.blocks import Kind, Role
from sessions.importers.decoded import Faults, Unreadable, decode, lines
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession
from sessions.importers.records import Compaction, Json, Log, Message, Skipped
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

_FOR_PEOPLE = frozenset(
    {
        "systemNotification",
        "actionRequired",
        "toolConfirmationRequest",
        "contextLengthExceeded",
        "summarizationRequested",
        "conversationCompacted",
    }
)
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
        items = map(mapping, sequence(whole.get("conversation")))
        _take_all(writer, list(enumerate(items, start=1)))
        return _named(writer, whole, name)
    faults = Faults("Lines that are not readable JSON")
    header: dict[str, Json] = {}
    said: list[tuple[int, dict[str, Json]]] = []
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            writer.skipped.append(faults.line(line))
        elif line.number == 1:
            header = given
            writer.skipped.append(Skipped(1, "header", "not context", line.raw))
        else:
            said.append((line.number, given))
    _take_all(writer, said)
    log = _named(writer, header, name)
    log.problems += faults.sentences()
    return log


def _named(writer: ArraySession, header: dict[str, Json], name: str) -> Log:
    title = string(header.get("name")) or string(header.get("description"))
    model = string(mapping(header.get("model_config")).get("model_name"))
    log = writer.log(FORMAT, {"id": header.get("id"), "title": title, "model": model}, name)
    sessions, log.sessions = log.sessions, []
    return log.close(sessions)


def _take_all(writer: ArraySession, said: list[tuple[int, dict[str, Json]]]) -> None:
    """Write the messages. A compaction hides all of them from the agent, and its summary from the
    user: what precedes the last summary was sent, and what is hidden after it was not."""
    seen = [_is_seen_by("agent", item) for _, item in said]
    standing = seen.index(True) if True in seen else len(said)
    cuts = [
        place
        for place, (_, item) in enumerate(said[: standing + 1])
        if place and item.get("role") == "user" and not _is_seen_by("user", item)
    ]
    for place, (index, item) in enumerate(said):
        at = milliseconds(item.get("created"))
        if place in cuts:
            writer.session.records.append(Compaction(at=at, line=index))
        blocks = [made for one in blocks_of(item.get("content")) if (made := _block(one))]
        role = string(item.get("role"))
        if role not in {"user", "assistant"}:
            writer.no_message(index)
        elif not blocks or not (seen[place] or place < max(cuts, default=0)):
            writer.skipped.append(Skipped(index, role, "not context"))
        elif role == "user":
            message = _from_user(blocks, "summary" if place in cuts else None)
            message.at, message.line = at, index
            writer.message(message)
        else:
            message = Message("assistant", blocks, at=at, line=index)
            if _is_seen_by("user", item):
                writer.response(message, NOTHING, model="", raw=None)
            else:
                writer.message(message)  # by the client, so that the agent goes on


def _from_user(blocks: list[Block], kind: Kind | None) -> Message:
    results = has_type(blocks, "tool_result")
    role: Role = "tool" if results else "user"
    return Message(role, blocks, kind=kind, human=not results and kind is None)


def _is_seen_by(reader: str, item: dict[str, Json]) -> bool:
    return mapping(item.get("metadata")).get(f"{reader}Visible") is not False


def _block(block: Block) -> Block | None:
    form = block.get("type")
    audience = mapping(block.get("annotations")).get("audience")
    if form in _FOR_PEOPLE or (audience is not None and "assistant" not in sequence(audience)):
        return None
    if form in {"toolRequest", "frontendToolRequest"}:
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
    if form == "reasoning":
        return {"type": "thinking", "thinking": string(block.get("text"))}
    if text := string(mapping(block.get("resource")).get("text")):
        return text_block(text)
    return block


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
    files="`goose session export --format json`, older session `.jsonl`",
    recognised_by="`conversation` next to `working_dir`, or a first line with `working_dir`",
    read=read,
    knows_lines=recognises_lines,
    knows_document=recognises,
    folder="~/.local/share/goose/sessions",
)
