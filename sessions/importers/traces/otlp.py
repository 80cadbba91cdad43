"""OpenTelemetry traces: OTLP requests (protobuf; JSON, one or one per line), and spans as SDKs
print them."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.decoded import Faults, Unreadable, decode, lines
from sessions.importers.importer import Importer
from sessions.importers.records import Json, Log, Skipped
from sessions.importers.traces.model_spans import traced_call_of
from sessions.importers.traces.requests import request_of
from sessions.importers.traces.spans import TraceSpan, is_export, is_span, spans_in
from sessions.importers.traces.traced_calls import counted_calls, in_groups
from sessions.importers.traces.traced_contexts import write_sessions

FORMAT = "otlp-traces"


def recognises_text(start: str) -> bool:
    """Whether a file begins like a request in protobuf: its first field, in that a resource or
    spans, and later an attribute's value, a byte of no text."""
    return start[:1] == "\n" and not {*"\n\x12"}.isdisjoint(start[2:7]) and "\x12" in start[3:]


def recognises_lines(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are requests or spans."""
    return any(is_export(given) or is_span(given) for given in objects)


def recognises(value: Json) -> bool:
    """Whether a document is a request, a list of requests, or a list of spans."""
    first = value[0] if isinstance(value, list) and value else value
    return is_export(first) or is_span(first)


def read(data: bytes, name: str = "") -> Log:
    """Read a file: one document, or one document per line."""
    del name
    log = Log(FORMAT)
    if recognises_text(data[:_START].decode("utf-8", "replace")):
        return sessions_of(log, list(spans_in(request_of(data))))
    try:
        return sessions_of(log, list(spans_in(decode(data))))
    except Unreadable:
        pass
    faults, spans = Faults("Lines that are not readable JSON"), []
    for line in lines(data):
        found = list(spans_in(line.value, line.number))
        spans += found
        if line.fault:
            log.skipped.append(faults.line(line))
        elif not found:
            log.skipped.append(Skipped(line.number, "no spans", "unknown", line.raw))
    log.problems += faults.sentences()
    return sessions_of(log, spans)


_START = 4096


def sessions_of(log: Log, spans: list[TraceSpan]) -> Log:
    """Write the sessions of spans; others than calls that count are skipped."""
    found = [(span, traced_call_of(span)) for span in spans]
    calls = [one for _, one in found if one is not None]
    taken = [one for group in in_groups(calls).values() for one in counted_calls(group)]
    kept = {id(one) for one in taken}
    lines_used = {one.line for one in taken}
    for span, one in found:
        if id(one) not in kept and (not span.line or span.line not in lines_used):
            lines_used.add(span.line)
            log.skipped.append(Skipped(span.line, f"span {span.name}"[:120], "not context"))
    write_sessions(log, calls)
    if not taken:
        log.problems.append(
            "No span is a model call. Record prompts and answers: instrument the model's client, "
            "and turn on the capture of message content."
        )
    return log


IMPORTER = Importer(
    name=FORMAT,
    order=55,
    title="OpenTelemetry traces",
    files="OTLP requests (JSON, one or one per line; protobuf); spans as SDKs print them",
    recognised_by="`resourceSpans`, or spans with a context and attributes",
    read=read,
    knows_text=recognises_text,
    knows_lines=recognises_lines,
    knows_document=recognises,
)
