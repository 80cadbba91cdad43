"""Conversations of OpenHands: a folder of one event per file, joined to numbered lines."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.decoded import Faults, Line, lines
from sessions.importers.importer import Importer
from sessions.importers.naming import stem_of
from sessions.importers.openai_wire import content_blocks
from sessions.importers.records import (
    Call,
    Compaction,
    Json,
    Log,
    Message,
    Reason,
    Session,
    Skipped,
)
from sessions.importers.traces.said import unpacked
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "openhands-events"

_BESIDE = frozenset(
    {
        "CondensationRequest",
        "CondensationSummaryEvent",
        "ConversationStateUpdateEvent",
        "ConversationErrorEvent",
        "PauseEvent",
        "TokenEvent",
    }
)


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are events of OpenHands."""
    return any(_is_ours(mapping(given.get("event")) or given) for given in objects)


def _is_ours(given: dict[str, Json]) -> bool:
    kind = string(given.get("kind"))
    return kind.endswith(("Event", "Condensation")) and "source" in given and "id" in given


def read(data: bytes, name: str = "") -> Log:
    """Read a conversation; each line becomes records or is kept as skipped."""
    reader = _EventReader()
    for line in lines(data):
        reader.take(line)
    return reader.close(name)


class _EventReader:
    """Processes events in their order. Parallel tool calls share the id of their response."""

    def __init__(self) -> None:
        self.log = Log(FORMAT)
        self.session = Session("", agent="openhands")
        self._faults = Faults("Events that are not readable JSON")
        self._sent: list[str] = []
        self._calls: set[str] = set()
        self._numbers: list[int] = []

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.fault:
            self.log.skipped.append(self._faults.line(line))
            return
        given = mapping(line.value)
        if isinstance(number := given.get("number"), int) and "event" in given:
            self._numbers.append(number)
            given = mapping(given.get("event"))
        kind = string(given.get("kind"))
        key = string(given.get("id")) or f"line-{line.number}"
        # A folder's name repeats or changes; the id of its first event stays.
        self.session.external_id = self.session.external_id or string(given.get("id"))
        if kind == "Condensation":
            self._condense(given, key, line.number)
            return
        message = self._message(kind, given, key)
        if message is None or not message.blocks:
            known = message is not None or kind in _BESIDE
            reason: Reason = "not context" if known else "unknown" if kind else "malformed"
            self.log.skipped.append(Skipped(line.number, kind[:120], reason, line.raw))
            return
        message.key, message.line = key, line.number
        message.at = milliseconds(given.get("timestamp"))
        self.session.records.append(message)
        self._sent.append(key)
        if message.call and message.call not in self._calls:
            self._calls.add(message.call)
            call = Call(message.call, at=message.at, line=line.number)
            self.session.records.append(call)

    def close(self, name: str) -> Log:
        """Return the log, which names the events that are missing."""
        self.session.title = stem_of(name)
        numbers = sorted(set(self._numbers))
        pairs = zip(numbers, numbers[1:], strict=False)
        gaps = [f"{a + 1}" if b == a + 2 else f"{a + 1} to {b - 1}" for a, b in pairs if b > a + 1]
        if gaps:
            more = f", and {len(gaps) - 5} more gaps" if len(gaps) > 5 else ""
            self.log.problems.append(
                f"Missing events in the folder: {', '.join(gaps[:5])}{more}. The contexts after "
                "them lack what they said."
            )
        self.log.problems.extend(self._faults.sentences())
        return self.log.close([self.session])

    def _message(self, kind: str, given: dict[str, Json], key: str) -> Message | None:
        if kind == "SystemPromptEvent":
            tools = sequence(given.get("tools"))
            blocks: list[Block] = [{"type": "tools", "tools": tools}] if tools else []
            texts = [given.get("system_prompt"), given.get("dynamic_context")]
            blocks += content_blocks([one for one in texts if one])
            return Message("system", blocks, kind="system")
        if kind == "MessageEvent":
            said = mapping(given.get("llm_message"))
            blocks = [*_thinking(said), *content_blocks(said.get("content"))]
            blocks += content_blocks(sequence(given.get("extended_content")))
            if said.get("role") == "assistant" or given.get("source") == "agent":
                return Message("assistant", blocks, call=_call(given, key))
            return Message("user", blocks, human=given.get("source") == "user")
        if kind == "ActionEvent":
            return Message("assistant", _action(given), call=_call(given, key))
        if kind in {"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"}:
            return Message("tool", [_observation(given)])
        return None

    def _condense(self, given: dict[str, Json], key: str, line: int) -> None:
        forgotten = {one for one in sequence(given.get("forgotten_event_ids")) if str(one) == one}
        self._sent = [one for one in self._sent if one not in forgotten]
        at = milliseconds(given.get("timestamp"))
        compaction = Compaction("auto", tuple(self._sent), at=at, key=f"{key}:cut", line=line)
        self.session.records.append(compaction)
        if summary := string(given.get("summary")):
            blocks = [text_block(summary)]
            message = Message("user", blocks, key=key, at=at, kind="summary", line=line)
            self.session.records.append(message)
            self._sent.append(key)


def _call(given: dict[str, Json], key: str) -> str:
    return string(given.get("llm_response_id")) or key


def _action(given: dict[str, Json]) -> list[Block]:
    blocks = _thinking(given)
    blocks += content_blocks(sequence(given.get("thought")))
    function = mapping(mapping(given.get("tool_call")).get("function"))
    stated = unpacked(function.get("arguments"))
    action = {k: v for k, v in mapping(given.get("action")).items() if k != "kind"}
    blocks.append(
        {
            "type": "tool_use",
            "id": string(given.get("tool_call_id")),
            "name": string(given.get("tool_name")),
            "input": stated if isinstance(stated, dict) else action,
        }
    )
    return blocks


def _thinking(given: dict[str, Json]) -> list[Block]:
    thought = string(given.get("reasoning_content"))
    return [{"type": "thinking", "thinking": thought}] if thought else []


def _observation(given: dict[str, Json]) -> Block:
    """A tool's result. Fields beside the text, such as the exit code, stay in the block."""
    seen = mapping(given.get("observation"))
    stated = (seen.get(name) for name in ("content", "output", "text", "error"))
    found = next((one for one in stated if one and one is not True), None) or given.get("error")
    if rejected := string(given.get("rejection_reason")) or string(given.get("reason")):
        found = f"Action rejected: {rejected}"  # as the model reads it
    content = found if isinstance(found, str) else content_blocks(sequence(found))
    failed = given.get("kind") == "AgentErrorEvent" or bool(seen.get("is_error"))
    return {
        "type": "tool_result",
        "tool_use_id": string(given.get("tool_call_id")),
        "content": content,
        "is_error": failed or seen.get("error") is True,
    }


IMPORTER = Importer(
    name=FORMAT,
    order=35,
    title="OpenHands conversations",
    files="the folder of a conversation's events",
    recognised_by="events with `kind` and `source`",
    read=read,
    knows_lines=recognises,
    folder="~/.openhands/conversations",
)
