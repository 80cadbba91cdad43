"""Transcripts of Cursor (JSONL): roles and blocks, without ids, times or usage."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from compaction.context.blocks import Role
from sessions.importers.decoded import Faults, lines
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession
from sessions.importers.records import Json, Log, Message, Reason, Skipped
from sessions.importers.reported import NOTHING
from sessions.importers.wire import blocks_of, has_type, is_said_in, mapping, string

FORMAT = "cursor"


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether most of the first objects have a role beside a message that has none."""
    objects = list(objects)
    return 2 * sum(map(_is_ours, objects)) > len(objects)


def _is_ours(given: dict[str, Json]) -> bool:
    inner = mapping(given.get("message"))
    return (
        string(given.get("role")) in {"user", "assistant"}
        and "content" in inner
        and "role" not in inner
    )


def read(data: bytes, name: str = "") -> Log:
    """Read a transcript. Its calls have no ids: they are numbered, and a result answers the calls
    of the answer before it in their order."""
    writer = ArraySession("cursor")
    faults = Faults("Lines that are not readable JSON")
    open_calls: deque[str] = deque()
    before = ""
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            writer.skipped.append(faults.line(line))
            continue
        blocks = blocks_of(mapping(given.get("message")).get("content"))
        if not _is_ours(given) or not blocks:
            form = string(given.get("type")) or string(given.get("role"))
            known = form in {"turn_ended", "user", "assistant"}
            reason: Reason = "not context" if known else "unknown"
            writer.skipped.append(Skipped(line.number, form, reason, line.raw))
            continue
        answers = has_type(blocks, "tool_result")
        if before != given["role"] and not answers:
            open_calls.clear()
        before = given["role"]
        for place, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                block["id"] = string(block.get("id")) or f"call-{line.number}.{place}"
                open_calls.append(block["id"])
            elif block.get("type") == "tool_result" and not block.get("tool_use_id"):
                block["tool_use_id"] = open_calls.popleft() if open_calls else ""
        if given["role"] == "assistant" and not answers:
            message = Message("assistant", blocks, line=line.number)
            writer.response(message, NOTHING, model="", raw=None)
        else:
            human = not answers and any(map(is_said_in, blocks))
            role: Role = "tool" if answers else "user"
            writer.message(Message(role, blocks, human=human, line=line.number))
    log = writer.log(FORMAT, {}, name)
    log.problems += faults.sentences()
    return log


IMPORTER = Importer(
    name=FORMAT,
    order=47,
    title="Cursor",
    files="`agent-transcripts/*.jsonl`",
    recognised_by="lines with `role` next to a `message` of blocks",
    read=read,
    knows_lines=recognises,
    folder="~/.cursor/projects",
    rank=4,
)
