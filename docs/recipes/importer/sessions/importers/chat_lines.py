"""Chat lines (JSONL): a header, then one line for each message, with who wrote it."""

from __future__ import annotations

from sessions.importers.decoded import Faults, lines
from sessions.importers.importer import Importer
from sessions.importers.records import Call, Json, Log, Message, Record, Session, Skipped
from sessions.importers.reported import openai_usage
from sessions.importers.wire import Block, mapping, milliseconds, string, text_block

FORMAT = "chat-lines"


def recognises(objects: list[dict[str, Json]]) -> bool:
    """Whether objects from the head of a JSONL file are lines of this format."""
    return any(one.get("format") == FORMAT for one in objects)


def read(data: bytes, name: str = "") -> Log:
    """Read a whole file; every line becomes records or is kept as skipped."""
    del name
    log, session = Log(FORMAT), Session("", agent="chat")
    faults = Faults("Lines that are not readable JSON")
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            log.skipped.append(faults.line(line))
        elif "format" in given:
            session.external_id = session.external_id or string(given.get("chat"))
            session.model = session.model or string(given.get("model"))
            log.skipped.append(Skipped(line.number, "header", "not context", line.raw))
        elif found := records_of(given, line.number):
            session.records += found
        else:
            log.skipped.append(Skipped(line.number, string(given.get("who")), "unknown", line.raw))
    log.problems += faults.sentences()
    log.sessions += [session] if session.records else []
    return log


def records_of(given: dict[str, Json], line: int) -> list[Record]:
    """The message of a line, and the model call that it ended."""
    who, text, tool_call = (string(given.get(field)) for field in ("who", "text", "call"))
    key, at = f"line-{line}", milliseconds(given.get("at"))
    blocks: list[Block] = [text_block(text)] if text else []
    if who == "person" and blocks:
        return [Message("user", blocks, key=key, at=at, human=True, line=line)]
    if who == "tool":
        failed = given.get("failed") is True
        result = {"type": "tool_result", "tool_use_id": tool_call, "content": text}
        return [Message("user", [{**result, "is_error": failed}], key=key, at=at, line=line)]
    if tool := string(given.get("tool")):
        asked = mapping(given.get("input"))
        blocks.append({"type": "tool_use", "id": tool_call, "name": tool, "input": asked})
    if who != "agent" or not blocks:
        return []
    raw = given.get("usage")
    usage, reconciles = openai_usage(raw)
    call = Call(key, at=at, usage=usage, usage_raw=raw, reconciles=reconciles, line=line)
    return [Message("assistant", blocks, key=key, call=key, at=at, line=line), call]


IMPORTER = Importer(
    name=FORMAT,
    order=45,
    title="Chat lines",
    files="`.jsonl`",
    recognised_by="a header with the `format` `chat-lines`",
    read=read,
    knows_lines=recognises,
)
