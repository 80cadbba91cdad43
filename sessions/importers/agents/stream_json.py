"""Messages of `claude -p --output-format stream-json` and the Agent SDK: one per line, or an
array that wraps each in its direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compaction.context.blocks import Kind
from sessions.importers.decoded import Faults, Unreadable, decode, lines
from sessions.importers.importer import Importer
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
from sessions.importers.reported import anthropic_usage
from sessions.importers.wire import (
    blocks_of,
    has_type,
    is_said_in,
    mapping,
    milliseconds,
    sequence,
    string,
)

FORMAT = "claude-stream-json"

_BY_CLIENT = "<synthetic>"
"""The model of responses that the client wrote."""

_BESIDE = frozenset(
    {"system", "result", "stream_event", "control_request", "control_response", "rate_limit_event"}
)


def recognises_lines(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are messages of the stream."""
    return any(_is_ours(given) for given in objects)


def recognises(value: Json) -> bool:
    """Whether a document is a recorded conversation with the client."""
    return any(_is_ours(mapping(one)) for one in _recorded(value))


def _is_ours(given: dict[str, Json]) -> bool:
    inner = mapping(given.get("message"))
    if "direction" in given:
        return _is_ours(inner)
    form = string(given.get("type"))
    if form == "system":
        return given.get("subtype") == "init" and "session_id" in given
    return form in {"user", "assistant"} and "session_id" in given and bool(inner)


def _recorded(value: Json) -> list[Json]:
    return sequence(value) or sequence(mapping(value).get("messages"))


def read(data: bytes, name: str = "") -> Log:
    """Read a stream; each message becomes records or is kept as skipped."""
    del name
    log = Log(FORMAT)
    faults = Faults("Lines that are not readable JSON")
    reader = _StreamReader(log)
    try:
        whole = decode(data)
    except Unreadable:
        whole = None
    if whole is not None and _recorded(whole):
        for index, item in enumerate(_recorded(whole), start=1):
            reader.take(mapping(item), index, b"")
        return reader.close()
    for line in lines(data):
        if line.fault:
            log.skipped.append(faults.line(line))
        else:
            reader.take(mapping(line.value), line.number, line.raw)
    log.problems += faults.sentences()
    return reader.close()


class _StreamReader:
    """Passes messages to the agent they belong to, by the tool call that started it.

    The stream has no tree. A response comes as several messages, one per block, with one id.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self._main = ""
        self._agents: dict[str, Session] = {}
        self._awaits_summary = False

    def take(self, given: dict[str, Json], index: int, raw: bytes) -> None:
        """Process one message."""
        if "direction" in given:
            given = mapping(given.get("message"))
        form = string(given.get("type"))
        if form in {"user", "assistant"} and (record := self._record(given, form, index)):
            agent = self._agent(string(given.get("parent_tool_use_id")))
            agent.records.extend(record)
            model = string(mapping(given.get("message")).get("model"))
            agent.model = agent.model if model in {"", _BY_CLIENT} else model
            return
        if form in {"system", "result"}:
            self._main = string(given.get("session_id")) or self._main
        if given.get("subtype") == "compact_boundary":
            self._compact(given, index)
            return
        known = form in _BESIDE or form in {"user", "assistant"}
        reason: Reason = "not context" if known else "unknown" if form else "malformed"
        self.log.skipped.append(Skipped(index, form[:120], reason, raw))

    def close(self) -> Log:
        """Name the sessions, and return the log."""
        for parent_call, session in self._agents.items():
            session.external_id = self._main
            if parent_call:
                session.external_id = f"{self._main or 'stream'}/{parent_call}"
                session.parent, session.parent_call = self._main or None, parent_call
        return self.log.close(self._agents.values())

    def _agent(self, parent_call: str) -> Session:
        return self._agents.setdefault(parent_call, Session("", agent="claude-code"))

    def _record(
        self, given: dict[str, Json], form: str, index: int
    ) -> Iterable[Message | Call] | None:
        inner = mapping(given.get("message"))
        blocks = blocks_of(inner.get("content"))
        if not blocks or given.get("error"):
            return None
        at = milliseconds(given.get("timestamp"))
        key = string(given.get("uuid")) or f"message-{index}"
        if form == "user":
            human = not has_type(blocks, "tool_result") and any(map(is_said_in, blocks))
            human = human and not given.get("isSynthetic") and not given.get("parent_tool_use_id")
            kind: Kind | None = None
            if self._awaits_summary and given.get("isSynthetic"):
                kind, self._awaits_summary = "summary", False
            return [Message("user", blocks, key=key, at=at, human=human, kind=kind, line=index)]
        return self._response(inner, Message("assistant", blocks, key=key, at=at, line=index))

    def _compact(self, given: dict[str, Json], index: int) -> None:
        about = mapping(given.get("compact_metadata"))
        before, trigger = about.get("pre_tokens"), about.get("trigger")
        compaction = Compaction(
            "manual" if trigger == "manual" else "auto" if trigger == "auto" else "unknown",
            tokens_before=before if isinstance(before, int) else None,
            at=milliseconds(given.get("timestamp")),
            key=string(given.get("uuid")) or None,
            line=index,
        )
        self._agent("").records.append(compaction)
        self._awaits_summary = True

    def _response(self, inner: dict[str, Json], message: Message) -> Iterator[Message | Call]:
        if inner.get("model") == _BY_CLIENT:
            yield message
            return
        message.call = string(inner.get("id")) or f"call-{message.line}"
        usage, reconciles = anthropic_usage(inner.get("usage"))
        yield message
        yield Call(
            message.call,
            model=string(inner.get("model")),
            at=message.at,
            usage=usage,
            usage_raw=inner.get("usage") if usage else None,
            reconciles=reconciles,
            stop_reason=string(inner.get("stop_reason")),
            line=message.line,
        )


IMPORTER = Importer(
    name=FORMAT,
    order=22,
    title="Claude Code's stream",
    files="output of `claude -p --output-format stream-json`, recordings of the Agent SDK",
    recognised_by="messages with `session_id`, or wrapped in their `direction`",
    read=read,
    knows_lines=recognises_lines,
    knows_document=recognises,
)
