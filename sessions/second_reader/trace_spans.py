"""Spans of traces: what is of use in them, by the names of several conventions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sessions.second_reader.reread import (
    Billed,
    Json,
    billed_whole,
    dicts,
    largest,
    objects,
    within,
)
from sessions.second_reader.trace_messages import opened

_GROUPS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "scope.agentic.session",
    "ai.telemetry.metadata.sessionId",
    "traceloop.association.properties.session_id",
)
_CHATS = ("chat", "text_completion", "generate_content", "completion")
_USAGE = (
    re.compile(
        r"gen_ai\.usage\.(input|prompt)_tokens|llm\.token_count\.prompt"
        r"|ai\.usage\.(input|prompt)Tokens|prompt_tokens"
    ),
    re.compile(
        r"gen_ai\.usage\.(cache_read[._]input_tokens|details\.cache_read_tokens)"
        r"|llm\.token_count\.prompt_details\.cache_read|ai\.usage\.cachedInputTokens"
    ),
    re.compile(
        r"gen_ai\.usage\.(cache_creation[._]input_tokens|details\.cache_write_tokens)"
        r"|llm\.token_count\.prompt_details\.cache_write"
    ),
    re.compile(
        r"gen_ai\.usage\.(output|completion)_tokens|llm\.token_count\.completion"
        r"|ai\.usage\.(output|completion)Tokens|completion_tokens"
    ),
)
"""Attributes of the prompt, what was read from and written to the cache, and the output."""


@dataclass(slots=True)
class Spanned:
    """A span: its attributes beside those of its resource, and its events by name."""

    at: int
    trace: str
    attributes: dict[str, Json]
    events: list[tuple[str, dict[str, Json]]]
    line: int
    parent: str = ""

    @property
    def group(self) -> str:
        """The conversation, else the trace."""
        return next(
            (str(self.attributes[n]) for n in _GROUPS if self.attributes.get(n)), self.trace
        )

    @property
    def is_model(self) -> bool:
        """Whether it is a model call; outer spans and those of HTTP clients repeat it."""
        given = self.attributes
        return (
            given.get("openinference.span.kind") == "LLM"
            or given.get("gen_ai.operation.name") in _CHATS
            or given.get("llm.request.type") in _CHATS
            or str(given.get("ai.operationId")).endswith((".doGenerate", ".doStream"))
            or given.get("span.type") in ("inference", "inference.framework")
        )

    @property
    def is_tool(self) -> bool:
        """Whether it is the call of a tool."""
        return bool(self.attributes.get("gen_ai.operation.name") == "execute_tool")

    def prompts(self) -> list[Json]:
        """Where a prompt may be, the best place first."""
        given = self.attributes
        return [
            given.get("gen_ai.input.messages"),
            self._below("llm.input_messages"),
            given.get("ai.prompt.messages"),
            self._below("gen_ai.prompt"),
            given.get("gen_ai.prompt"),
            self._in_events("input", "data.input"),
            given.get("input.value"),
        ]

    def answers(self) -> list[Json]:
        """Where a response may be."""
        given = self.attributes
        parts = [
            {"type": "reasoning", "text": given.get("ai.response.reasoning")},
            {"text": given.get("ai.response.text") or given.get("ai.response.object")},
        ]
        calls = opened(given.get("ai.response.toolCalls"))
        return [
            given.get("gen_ai.output.messages"),
            self._below("llm.output_messages"),
            {"role": "assistant", "content": parts, "tool_calls": calls},
            self._below("gen_ai.completion"),
            given.get("gen_ai.completion"),
            self._in_events("output", "data.output"),
            given.get("output.value"),
        ]

    def tools(self) -> list[Json]:
        """The tools that were offered."""
        given = self.attributes
        stated = opened(given.get("gen_ai.tool.definitions")) or given.get("ai.prompt.tools")
        nested = dicts(self._below("llm.tools"))
        listed = stated or [within(one, "tool", "json_schema") for one in nested]
        return [opened(one) for one in listed]

    def billed(self) -> Billed | None:
        """The usage; the prompt includes the cache."""
        given = dict(self.attributes)
        for name, event in self.events:
            given |= event if name == "metadata" else {}
        return billed_whole(
            *(largest(*(v for k, v in given.items() if p.fullmatch(k))) for p in _USAGE)
        )

    def _below(self, prefix: str) -> Json:
        tree: dict[str, Json] = {}
        for name, value in self.attributes.items():
            if name.startswith(f"{prefix}."):
                *path, last = name[len(prefix) + 1 :].split(".")
                inner = tree
                for step in path:
                    inner = inner.setdefault(step, {})
                inner[last] = value
        return _listed(tree)

    def _in_events(self, side: str, monocle: str) -> list[Json]:
        found: list[Json] = []
        for name, given in self.events:
            if name == monocle:
                stated = given.get("input") if side == "input" else [given.get("response")]
                found += [_monocle(one) for one in stated or []]
            elif name == "gen_ai.choice" and side == "output":
                found.append(opened(given.get("message")) or given)
            elif re.fullmatch(r"gen_ai\.\w+\.message", name) and side == "input":
                found.append({"role": name.split(".")[1], **given})
            elif f"gen_ai.{side}.messages" in given:
                found += opened(given[f"gen_ai.{side}.messages"])
        return found


def _listed(tree: Json) -> Json:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _listed(one) for name, one in tree.items()}
    numbered = inner and all(name.isdecimal() for name in inner)
    return [inner[name] for name in sorted(inner, key=int)] if numbered else inner


def _monocle(given: Json) -> Json:
    """A message of Monocle's, named by who said it; a response of calls names them alone."""
    stated = opened(given)
    for by, content in stated.items() if isinstance(stated, dict) else ():
        inner = opened(content)
        calls = inner if isinstance(inner, list) else [inner]
        if by in ("ai", "assistant") and all("args" in (one or {}) for one in calls):
            return {"role": "assistant", "tool_calls": calls}
        return {"role": by, "content": content}
    return given


def spans_in(data: bytes) -> Iterator[Spanned]:
    """The spans of a document, of the documents in its lines, or of a request in protobuf."""
    try:
        return _spans(json.loads(data), 0)
    except ValueError:
        if data[:1] == b"\n":
            return _spans(MessageToDict(ExportTraceServiceRequest.FromString(data)), 0)
    return (span for line, value in objects(data) for span in _spans(value, line))


def _spans(value: Json, line: int) -> Iterator[Spanned]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(given := one.get("attributes"), dict):
            events = [(str(e.get("name")), e["attributes"]) for e in dicts(one.get("events"))]
            about = one.get("context") or one.get("spanContext")
            trace = about.get("trace_id") or about.get("traceId")
            at = _moment(one.get("start_time") or one.get("startTime"))
            outer = within(one, "resource", "attributes") or {}
            parent = one.get("parent_id") or one.get("parentSpanId")
            parent = parent or within(one, "parentSpanContext", "spanId")
            yield Spanned(at, str(trace), {**outer, **given}, events, line, str(parent or ""))
        exported = one.get("resourceSpans") or _in_camel_case(one.get("resource_spans"))
        for part in dicts(exported):
            outer = _named(within(part, "resource", "attributes"))
            for span in (
                s for scope in dicts(part.get("scopeSpans")) for s in dicts(scope["spans"])
            ):
                events = [
                    (str(e.get("name")), _named(e.get("attributes")))
                    for e in dicts(span.get("events"))
                ]
                at = int(span.get("startTimeUnixNano") or 0) // 10**6
                own = {**outer, **_named(span.get("attributes"))}
                parent = str(span.get("parentSpanId") or "")
                yield Spanned(at, str(span.get("traceId")), own, events, line, parent)


def _in_camel_case(value: Json) -> Json:
    """Fields of a request by the names of JSON, if an exporter wrote those of protobuf."""
    if isinstance(value, list):
        return [_in_camel_case(one) for one in value]
    if not isinstance(value, dict):
        return value
    fields = {re.sub("_(.)", lambda m: m[1].upper(), name): one for name, one in value.items()}
    return {name: _in_camel_case(one) for name, one in fields.items()}


def _moment(given: Json) -> int:
    if isinstance(given, list):
        return int(given[0] * 1000 + given[1] / 1e6)
    return int(datetime.fromisoformat(given).timestamp() * 1000)


def _named(attributes: Json) -> dict[str, Json]:
    return {str(one.get("key")): _value(one.get("value")) for one in dicts(attributes)}


def _value(given: Json) -> Json:
    for form, value in (given or {}).items():
        if form == "intValue":
            return int(value)
        if form == "arrayValue":
            return [_value(one) for one in value.get("values") or []]
        return _named(value.get("values")) if form == "kvlistValue" else value
    return None
