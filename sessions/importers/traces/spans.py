"""Spans of OpenTelemetry in the JSON forms that tools write, with plain attributes."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from sessions.importers.decoded import MAX_DEPTH
from sessions.importers.records import Json
from sessions.importers.wire import mapping, milliseconds, sequence, string

_ID_BYTES = frozenset({8, 16})
"""Lengths of the ids of spans and traces."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One span. Attributes of the resource are beside its own, which win."""

    id: str
    trace: str
    parent: str
    name: str
    at: int | None
    attributes: dict[str, Json]
    events: list[tuple[str, dict[str, Json]]] = field(default_factory=list)
    line: int = 0

    def text(self, *names: str) -> str:
        """The first of these attributes that is a text."""
        return next((found for name in names if (found := string(self.attributes.get(name)))), "")

    def nested(self, prefix: str) -> Json:
        """Attributes below a prefix as one value: `a.0.b` is `b` of the first item of `a`. Without
        names of more than `MAX_DEPTH` parts: no value of them could be stored."""
        tree: dict[str, Json] = {}
        start = f"{prefix}."
        for name, value in self.attributes.items():
            if name.startswith(start) and name.count(".") <= MAX_DEPTH:
                _put(tree, name[len(start) :].split("."), value)
        return _listed(tree)


def _put(tree: dict[str, Json], path: list[str], value: Json) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree.setdefault(path[-1], value)


def _listed(tree: Json) -> Json:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _listed(value) for name, value in tree.items()}
    if inner and all(name.isascii() and name.isdecimal() and len(name) < 10 for name in inner):
        return [inner[name] for name in sorted(inner, key=int)]
    return inner


def is_export(value: Json) -> bool:
    """Whether a value is a request of the OTLP exporter."""
    given = mapping(value)
    return isinstance(given.get("resourceSpans") or given.get("resource_spans"), list)


def is_span(value: Json) -> bool:
    """Whether a value is a span as SDKs print it."""
    given = mapping(value)
    context = mapping(given.get("context") or given.get("spanContext"))
    named = "span_id" in context or "spanId" in context
    return named and isinstance(given.get("attributes"), dict)


def spans_in(value: Json, line: int = 0) -> Iterator[TraceSpan]:
    """All spans of a document: OTLP requests, or spans as SDKs print them, alone or in a list."""
    if isinstance(value, list):
        for item in value:
            yield from spans_in(item, line)
    elif is_export(value):
        yield from (sent.span for sent in sent_spans(mapping(value), line))
    elif is_span(value):
        yield _printed(mapping(value), line)


class SentSpan(NamedTuple):
    """A span of an exporter's request, as it was sent, with its resource."""

    span: TraceSpan
    raw: dict[str, Json]
    resource: Json


def sent_spans(request: dict[str, Json], line: int = 0) -> Iterator[SentSpan]:
    """The spans of a request."""
    for resource_spans in map(mapping, sequence(_either(request, "resourceSpans"))):
        stated = resource_spans.get("resource")
        resource = _attributes(mapping(stated).get("attributes"))
        for scope in map(mapping, sequence(_either(resource_spans, "scopeSpans"))):
            for span in map(mapping, sequence(scope.get("spans"))):
                yield SentSpan(_exported(span, resource, line), span, stated)


def _exported(span: dict[str, Json], resource: dict[str, Json], line: int) -> TraceSpan:
    return TraceSpan(
        id=_identity(_either(span, "spanId")),
        trace=_identity(_either(span, "traceId")),
        parent=_identity(_either(span, "parentSpanId")),
        name=string(span.get("name")),
        at=_nanoseconds(_either(span, "startTimeUnixNano")),
        attributes=resource | _attributes(span.get("attributes")),
        events=[_event(mapping(one)) for one in sequence(span.get("events"))],
        line=line,
    )


def _printed(given: dict[str, Json], line: int) -> TraceSpan:
    context = mapping(given.get("context") or given.get("spanContext"))
    parent = given.get("parent_id") or given.get("parentSpanId")
    parent = parent or mapping(given.get("parentSpanContext")).get("spanId")
    resource = mapping(mapping(given.get("resource")).get("attributes"))
    events = [mapping(one) for one in sequence(given.get("events"))]
    return TraceSpan(
        id=_identity(context.get("span_id") or context.get("spanId")),
        trace=_identity(context.get("trace_id") or context.get("traceId")),
        parent=_identity(parent),
        name=string(given.get("name")),
        at=_moment(given.get("start_time") or given.get("startTime")),
        attributes=resource | mapping(given.get("attributes")),
        events=[(string(one.get("name")), mapping(one.get("attributes"))) for one in events],
        line=line,
    )


def _either(given: dict[str, Json], name: str) -> Json:
    """A field in either spelling: protobuf's JSON allows both."""
    found = given.get(name)
    return given.get(_snake(name)) if found is None else found


@cache
def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _event(given: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    return string(given.get("name")), _attributes(given.get("attributes"))


def _attributes(listed: Json) -> dict[str, Json]:
    pairs = (mapping(one) for one in sequence(listed))
    return {string(one.get("key")): _value(one.get("value")) for one in pairs}


def _value(given: Json) -> Json:
    """The plain value of an AnyValue."""
    stated = mapping(given)
    for name, value in stated.items():
        if name in {"stringValue", "string_value", "boolValue", "bool_value"}:
            return value
        if name in {"intValue", "int_value"}:
            text = str(value)
            return int(text) if text.lstrip("-").isdecimal() and len(text) < 19 else value
        if name in {"doubleValue", "double_value"}:
            return value
        if name in {"arrayValue", "array_value"}:
            return [_value(one) for one in sequence(mapping(value).get("values"))]
        if name in {"kvlistValue", "kvlist_value"}:
            return _attributes(mapping(value).get("values"))
    return None


def _identity(value: Json) -> str:
    """An id in hexadecimal digits; some exporters write base64."""
    text = string(value).removeprefix("0x")
    try:
        raw = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    is_hex = len(text) in {16, 32} and not set(text.lower()) - set("0123456789abcdef")
    return raw.hex() if len(raw) in _ID_BYTES and not is_hex else text


def _nanoseconds(value: Json) -> int | None:
    text = str(value) if isinstance(value, int | str) else ""
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        return None
    return milliseconds(int(text) // 1_000_000)


def _moment(value: Json) -> int | None:
    """A time in text, or as JavaScript's SDK prints it: seconds and nanoseconds."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], int):
        nanoseconds = value[1] if isinstance(value[1], int | float) else 0
        return milliseconds(value[0] + nanoseconds / 1e9)
    return milliseconds(value)
