"""Threads of LangGraph: the state of a thread (JSON), and recorded event streams (SSE)."""

from __future__ import annotations

import re

from sessions.importers.decoded import Faults, Unreadable, decode
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.reported import NOTHING, Reported, openai_usage
from sessions.importers.traces.said import TraceMessage, said_in
from sessions.importers.wire import mapping, milliseconds, sequence, string

FORMAT = "langgraph-thread"

_TYPES = frozenset({"human", "ai", "tool", "system"})
_EVENT = re.compile(r"event: \S+\r?\ndata: \{")


def recognises(value: Json) -> bool:
    """Whether a document is the state of a thread with messages."""
    messages = sequence(mapping(mapping(value).get("values")).get("messages"))
    return bool(messages) and string(mapping(messages[0]).get("type")) in _TYPES


def recognises_text(text: str) -> bool:
    """Whether a text begins with an event that names a thread."""
    return bool(_EVENT.match(text.lstrip())) and '"thread_id"' in text.split("\n\n", 1)[0]


def read(data: bytes, name: str = "") -> Log:
    """Read a thread, or a stream of events."""
    if recognises_text(data[:4096].decode("utf-8-sig", "replace")):
        return _read_stream(data, name)
    given = mapping(document(data, "the state of a LangGraph thread"))
    values, about = mapping(given.get("values")), mapping(given.get("metadata"))
    writer = ArraySession(string(about.get("graph_id")))
    for index, item in enumerate(map(mapping, sequence(values.get("messages"))), start=1):
        for said in said_in(item):
            _write(writer, said, item, index)
        if item.get("type") == "ai" and not said_in(item):
            _write(writer, TraceMessage("assistant", []), item, index)
        elif string(item.get("type")) not in _TYPES:
            writer.no_message(index)
    thread = about.get("thread_id") or mapping(given.get("checkpoint")).get("thread_id")
    return writer.log(FORMAT, {"id": thread, "title": values.get("title")}, name)


def _write(writer: ArraySession, said: TraceMessage, item: dict[str, Json], index: int) -> None:
    at = milliseconds(item.get("created_at"))
    message = Message(said.role, list(said.blocks), at=at, line=index)
    if said.role != "assistant":
        message.human = said.role == "user"
        message.kind = "system" if said.role == "system" else None
        writer.message(message)
        return
    about = mapping(item.get("response_metadata"))
    raw = item.get("usage_metadata")
    model = string(about.get("model_name")) or string(about.get("model"))
    writer.response(message, _usage(mapping(raw)), model=model, raw=raw)


def _usage(raw: dict[str, Json]) -> Reported:
    """LangChain's counts: the input includes the cache."""
    if not raw:
        return NOTHING
    read = mapping(raw.get("input_token_details"))
    thought = mapping(raw.get("output_token_details")).get("reasoning")
    cached = {"cached_tokens": read.get("cache_read")}
    written = {"cache_creation_tokens": read.get("cache_creation")}
    return openai_usage(
        {
            "input_tokens": raw.get("input_tokens"),
            "output_tokens": raw.get("output_tokens"),
            "input_tokens_details": cached | written,
            "output_tokens_details": {"reasoning_tokens": thought},
        }
    )


def _read_stream(data: bytes, name: str) -> Log:
    """Join the chunks of each message by its id; tool calls come whole in an event of their own."""
    writer = ArraySession("")
    faults = Faults("Events that are not readable JSON")
    messages: dict[str, dict[str, Json]] = {}
    lines: dict[str, int] = {}
    thread = ""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.startswith(b"data:"):
            continue
        try:
            given = mapping(decode(line[5:]))
        except Unreadable as error:
            writer.skipped.append(faults.item(number, line, str(error)))
            continue
        thread = thread or string(given.get("thread_id"))
        known = string(given.get("id")) or f"event-{number}"
        lines.setdefault(known, number)
        _join(messages.setdefault(known, {}), given)
    for known, given in messages.items():
        said = said_in(given)
        for one in said:
            _write(writer, one, {"response_metadata": {}}, lines[known])
        if not said:
            writer.skipped.append(Skipped(lines[known], "empty message", "not context"))
    log = writer.log(FORMAT, {"id": thread, "title": ""}, name)
    log.problems += faults.sentences()
    return log


def _join(message: dict[str, Json], given: dict[str, Json]) -> None:
    message["role"] = "tool" if "tool_call_id" in given else given.get("role") or "assistant"
    message["content"] = string(message.get("content")) + string(given.get("content"))
    for name in ("reasoning_content", "name", "tool_call_id"):
        if text := string(given.get(name)):
            message[name] = string(message.get(name)) + text
    # Chunks of the arguments follow; the first event has the name, and maybe all of them.
    chunks = "".join(
        string(mapping(one).get("args")) for one in sequence(given.get("tool_call_chunks"))
    )
    message["arguments"] = string(message.get("arguments")) + chunks
    calls = [mapping(one) for one in sequence(given.get("tool_calls"))]
    message["tool_calls"] = sequence(message.get("tool_calls")) + [
        c for c in calls if c.get("name")
    ]
    if len(message["tool_calls"]) == 1 and message["arguments"]:
        message["tool_calls"] = [{**message["tool_calls"][0], "args": message["arguments"]}]


IMPORTER = Importer(
    name=FORMAT,
    order=6,
    title="LangGraph threads",
    files="state of a thread (JSON), recorded event streams",
    recognised_by="`values.messages` with LangChain's types, or events with a `thread_id`",
    read=read,
    knows_document=recognises,
    knows_text=recognises_text,
)
