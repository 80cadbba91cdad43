"""Chats as JSONL: one message per line, or one conversation per line."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.decoded import Faults, lines
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession
from sessions.importers.naming import name_by_file, stem_of
from sessions.importers.openai_messages import MessageReader, is_role
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.reported import NOTHING, anthropic_usage
from sessions.importers.wire import blocks_of, has_type, mapping, sequence, string

FORMAT = "chat-jsonl"


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether most of the first objects of a JSONL file are messages or conversations.

    One conversation alone is a document.
    """
    objects = list(objects)
    said = [_is_message(given) for given in objects]
    talks = [bool(_messages(given)) for given in objects]
    return 2 * (sum(said) + sum(talks)) > len(objects) and (any(said) or len(objects) > 1)


def _is_message(given: dict[str, Json]) -> bool:
    return is_role(given.get("role")) and ("content" in given or "tool_calls" in given)


def _messages(given: dict[str, Json]) -> list[dict[str, Json]]:
    messages = [mapping(one) for one in sequence(given.get("messages"))]
    return messages if messages and all(is_role(one.get("role")) for one in messages) else []


def read(data: bytes, name: str = "") -> Log:
    """Read a file: all lines with a message are one session, each conversation is its own."""
    log = Log(FORMAT)
    faults = Faults("Lines that are not readable JSON")
    chat = ArraySession("")
    reader = MessageReader(chat)
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            log.skipped.append(faults.line(line))
        elif _is_message(given):
            _take(chat, reader, given, line.number)
        elif messages := _messages(given):
            one = ArraySession("")
            inner = MessageReader(one, string(given.get("model")))
            for message in messages:
                _take(one, inner, message, line.number)
            one.session.external_id = string(given.get("id"))
            if not one.session.external_id:
                name_by_file(one.session, f"{stem_of(name) or FORMAT} {line.number}", FORMAT)
            log.sessions.append(one.session)
        else:
            log.skipped.append(Skipped(line.number, string(given.get("type")), "unknown", line.raw))
    chat.session.title = stem_of(name)
    log.problems += faults.sentences()
    return log.close([chat.session])


def _take(writer: ArraySession, reader: MessageReader, given: dict[str, Json], number: int) -> None:
    """Write a message of either API: results and calls as blocks are Anthropic's."""
    blocks = blocks_of(given.get("content"))
    if not any(has_type(blocks, form) for form in ("tool_use", "tool_result", "thinking")):
        reader.take(given, number)
    elif given.get("role") == "assistant":
        raw = given.get("usage")
        reported = anthropic_usage(raw) if isinstance(raw, dict) else NOTHING
        message = Message("assistant", blocks, line=number)
        writer.response(message, reported, model=string(given.get("model")), raw=raw)
    else:
        human = not has_type(blocks, "tool_result")
        writer.message(Message("user", blocks, human=human, line=number))


IMPORTER = Importer(
    name=FORMAT,
    order=48,
    title="chats, one message or conversation per line",
    files="`.jsonl`",
    recognised_by="lines with `role` and `content`, or with `messages`",
    read=read,
    knows_lines=recognises,
)
