"""Files with one JSON document: an array of messages, or an object that contains one."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.importers.decoded import Faults, NotALog, Unreadable, decode
from sessions.importers.naming import stem_of
from sessions.importers.records import Call, Json, Log, Message, Session, Skipped
from sessions.importers.reported import Reported
from sessions.importers.wire import mapping, sequence, string

_INNER = ("request", "body", "data")
"""Where recorders store the request."""


@dataclass(slots=True)
class Conversation:
    """Messages, and the object around them (empty for a bare array)."""

    messages: list[Json]
    around: dict[str, Json] = field(default_factory=dict)


def conversation_of(value: Json) -> Conversation | None:
    """Find the messages of a document; None if there are none."""
    if isinstance(value, list):
        return Conversation(value) if _are_messages(value) else None
    given = mapping(value)
    for around in (given, *({**given, **mapping(given.get(name))} for name in _INNER)):
        messages = sequence(around.get("messages"))
        if _are_messages(messages):
            return Conversation(messages, around)
    return None


def _are_messages(value: Json) -> bool:
    """Whether the first item is a message with a role."""
    return (
        isinstance(value, list) and bool(value) and isinstance(mapping(value[0]).get("role"), str)
    )


def document(data: bytes, expected: str) -> Json:
    """Decode a whole file. Raises NotALog."""
    try:
        return decode(data)
    except Unreadable as error:
        raise NotALog(
            f"This is not a complete JSON document ({error}), so it cannot be {expected}. "
            "Export it again, or import the agent's JSONL file."
        ) from None


class ArraySession:
    """Writes the records of an array; each assistant message is one model call.

    `skipped` are the items without a record.
    """

    def __init__(self, agent: str) -> None:
        self.session = Session("", agent=agent)
        self.skipped: list[Skipped] = []
        self._faults = Faults("Items of the array that are no messages (they have no role)")
        self._calls = 0

    def message(self, message: Message) -> None:
        """Write a message."""
        self.session.records.append(message)

    def response(self, message: Message, reported: Reported, *, model: str, raw: Json) -> None:
        """Write an assistant message and its call."""
        self._calls += 1
        call = f"call-{self._calls}"
        message.call = call
        self.session.records.append(message)
        self.session.records.append(
            Call(
                call=call,
                model=model,
                at=message.at,
                usage=reported.usage,
                usage_raw=raw if reported.usage else None,
                reconciles=reported.reconciles,
                line=message.line,
            )
        )
        self.session.model = self.session.model or model

    def log(self, log_format: str, around: dict[str, Json], name: str) -> Log:
        """Return the log, its session with the id and the title that the file states."""
        ids = (around.get(k) for k in ("session_id", "sessionId", "conversation_id", "id"))
        self.session.external_id = next((one for one in ids if isinstance(one, str) and one), "")
        self.session.title = string(around.get("title")) or stem_of(name)
        self.session.model = self.session.model or string(around.get("model"))
        return Log(log_format, [self.session], self.skipped, self._faults.sentences())

    def no_message(self, index: int) -> None:
        """Skip an item that is not a message."""
        self.skipped.append(self._faults.item(index))
