"""Sessions of GitHub Copilot CLI (`events.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.decoded import Faults, Line, lines
from sessions.importers.importer import Importer
from sessions.importers.joined import by_headers
from sessions.importers.records import Call, Json, Log, Message, Reason, Session, Skipped
from sessions.importers.reported import Reported, cline_usage
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "copilot-cli"

_BESIDE = ("hook.", "session.", "permission.", "assistant.", "tool.", "abort")
"""Beginnings of types of events that the model never sees."""


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are events of Copilot."""
    return any(_is_ours(given) for given in objects)


def _is_ours(given: dict[str, Json]) -> bool:
    data = mapping(given.get("data"))
    if given.get("type") == "session.start":
        return "sessionId" in data
    return given.get("type") == "assistant.message" and "messageId" in data


def read(data: bytes, name: str = "") -> Log:
    """Read a file; each line becomes records or is kept as skipped."""
    del name
    reader = _CopilotReader()
    for line in lines(data):
        reader.take(line)
    return reader.close()


class _CopilotReader:
    """Processes the events of a session.

    Responses report their output only. The prompts' tokens are in the totals at the end, which are
    the usage of a call if there was only one.
    """

    def __init__(self) -> None:
        self.log = Log(FORMAT)
        self.session = Session("", agent="copilot-cli")
        self._faults = Faults("Lines that are not readable JSON")
        self._calls: list[str] = []

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.fault:
            self.log.skipped.append(self._faults.line(line))
            return
        given = mapping(line.value)
        form, data = string(given.get("type")), mapping(given.get("data"))
        message = self._message(form, data)
        if form == "session.start":
            self.session.external_id = self.session.external_id or string(data.get("sessionId"))
            self.session.meta |= {
                "version": string(data.get("copilotVersion")),
                "cwd": string(mapping(data.get("context")).get("cwd")),
            }
        if message is not None and (message.blocks or message.call):
            message.key = string(given.get("id")) or f"line-{line.number}"
            message.at, message.line = milliseconds(given.get("timestamp")), line.number
            self._write(message, data)
        elif form == "session.shutdown" and (call := self._only_call(data, line.number)):
            self.session.records.append(call)
        else:
            known = message is not None or form.startswith(_BESIDE)
            reason: Reason = "not context" if known else "unknown" if form else "malformed"
            self.log.skipped.append(Skipped(line.number, form[:120], reason, line.raw))

    def close(self) -> Log:
        """Return the log with its session."""
        self.log.problems.extend(self._faults.sentences())
        return self.log.close([self.session])

    def _message(self, form: str, data: dict[str, Json]) -> Message | None:
        text = string(data.get("content"))
        if form == "system.message":
            return Message("system", _texts(text), kind="system")
        if form == "user.message":
            sent = string(data.get("transformedContent")) or text
            return Message("user", _texts(sent), human=True)
        if form == "system.notification":
            return Message("user", _texts(text))
        if form == "assistant.message":
            return Message("assistant", _answer(data), call=self._call_id(data))
        if form == "tool.execution_complete":
            return Message("tool", [_result(data)])
        return None

    def _call_id(self, data: dict[str, Json]) -> str:
        stated = string(data.get("apiCallId")) or string(data.get("messageId"))
        return stated or f"call-{len(self._calls) + 1}"

    def _write(self, message: Message, data: dict[str, Json]) -> None:
        if message.blocks:
            self.session.records.append(message)
        if message.call is None:
            return
        self._calls.append(message.call)
        self.session.model = string(data.get("model")) or self.session.model
        self.session.records.append(
            Call(message.call, model=string(data.get("model")), at=message.at, line=message.line)
        )

    def _only_call(self, data: dict[str, Json], line: int) -> Call | None:
        """The usage of a session's only model call, from the totals."""
        models = mapping(data.get("modelMetrics"))
        self.session.meta["model_metrics"] = models
        if len(set(self._calls)) != 1 or len(models) != 1:
            return None
        (metrics,) = (mapping(one) for one in models.values())
        if mapping(metrics.get("requests")).get("count") != 1:
            return None
        raw = mapping(metrics.get("usage"))
        reported: Reported = cline_usage(raw)
        if reported.usage is None:
            return None
        return Call(
            self._calls[0],
            usage=reported.usage,
            usage_raw=raw,
            reconciles=reported.reconciles,
            line=line,
        )


def _texts(text: str) -> list[Block]:
    return [text_block(text)] if text else []


def _answer(data: dict[str, Json]) -> list[Block]:
    blocks: list[Block] = []
    if thought := string(data.get("reasoningText")):
        blocks.append({"type": "thinking", "thinking": thought})
    blocks += _texts(string(data.get("content")))
    for call in map(mapping, sequence(data.get("toolRequests"))):
        stated = call.get("arguments")
        given = stated if isinstance(stated, dict) else {"arguments": stated}
        used = {"type": "tool_use", "id": string(call.get("toolCallId"))}
        blocks.append({**used, "name": string(call.get("name")), "input": given})
    return blocks


def _result(data: dict[str, Json]) -> Block:
    failed = data.get("success") is False
    stated = mapping(data.get("result" if not failed else "error")) or mapping(data.get("result"))
    text = string(stated.get("content")) or string(stated.get("message"))
    called = string(data.get("toolCallId"))
    return {"type": "tool_result", "tool_use_id": called, "content": text, "is_error": failed}


IMPORTER = Importer(
    name=FORMAT,
    order=34,
    title="GitHub Copilot CLI",
    files="`events.jsonl`",
    recognised_by="events `session.start` with a session id, or `assistant.message`",
    read=read,
    knows_lines=recognises,
    split=lambda data: by_headers(
        data, "session.start", lambda one: string(mapping(one.get("data")).get("sessionId"))
    ),
    folder="~/.copilot/session-state",
    rank=3,
)
