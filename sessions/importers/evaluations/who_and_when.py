"""Failures of multi-agent systems from Who&When (JSON): one conversation of several agents."""

from __future__ import annotations

from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message
from sessions.importers.reported import NOTHING
from sessions.importers.wire import mapping, sequence, string, text_block

FORMAT = "who-and-when"

_TOOLS = frozenset({"computer_terminal", "computerterminal", "websurfer", "filesurfer"})
"""Names of those that answer with what a tool gave."""


def recognises(value: Json) -> bool:
    """Whether a document is an annotated failure."""
    given = mapping(value)
    return "mistake_agent" in given and isinstance(given.get("history"), list)


def read(data: bytes, name: str = "") -> Log:
    """Read a conversation: all agents share it, so their messages are one session's responses."""
    given = mapping(document(data, "a conversation of Who&When"))
    writer = ArraySession("who-and-when")
    for agent, prompt in mapping(given.get("system_prompt")).items():
        text = f"{agent}\n\n{string(prompt)}"
        writer.message(Message("system", [text_block(text)], kind="system"))
    for index, item in enumerate(map(mapping, sequence(given.get("history"))), start=1):
        role, text = string(item.get("role")), string(item.get("content"))
        speaks = role.partition(" (")[0] if role.endswith(")") else role
        speaker = string(item.get("name")) or speaks
        if not role:
            writer.no_message(index)
            continue
        message = Message("assistant", [text_block(text)] if text else [], line=index)
        message.extra = {"name": speaker}
        if speaker.lower() in _TOOLS:
            message.role, message.kind = "user", "result"
            writer.message(message)
        elif speaker == "human" or index == 1:
            # The first message gives the task, whatever its role.
            message.role, message.human = "user", speaker == "human"
            writer.message(message)
        else:
            writer.response(message, NOTHING, model="", raw=None)
    named = given.get("question_ID") or given.get("question_id")
    return writer.log(FORMAT, {"title": given.get("question"), "id": ""}, name or string(named))


IMPORTER = Importer(
    name=FORMAT,
    order=53,
    title="Who&When",
    files="annotated conversations (JSON)",
    recognised_by="`mistake_agent` next to `history`",
    read=read,
    knows_document=recognises,
)
