"""Requests of exporters: several as one, in parts that are read by themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby

from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sessions.importers.decoded import NotALog, Unreadable, decode
from sessions.importers.records import Json
from sessions.importers.traces.model_spans import group_of, is_call, traced_call_of
from sessions.importers.traces.spans import SentSpan, is_export, sent_spans
from sessions.importers.traces.traced_calls import by_time
from sessions.importers.wire import mapping

MOST_VALUES = 2_000_000
"""Fields, lists and objects of a request (our choice: an exporter's of 64 MB has fewer)."""

_LEAST = 2
"""Bytes of a value."""

MOST_CALLS = 200
"""Calls of a part (our choice: a second or two, as long as any job's turn)."""


def request_in(data: bytes) -> dict[str, Json] | None:
    """A request in its JSON form; None if the bytes are none. Raises NotALog if it has more values
    than any exporter's."""
    _refuse_endless(data)
    try:
        value = decode(data)
        return mapping(value) if is_export(value) else None
    except Unreadable:
        pass
    try:
        return request_of(data)
    except NotALog:
        return None


def request_of(data: bytes) -> dict[str, Json]:
    """A request in protobuf in its JSON form. Raises NotALog."""
    try:
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError:
        raise NotALog("The request is no valid protobuf. Export the traces again.") from None
    return dict(MessageToDict(request))


def parts_of(
    requests: Iterable[dict[str, Json]], stored_until: Callable[[str], int]
) -> list[bytes]:
    """Requests as one, cut into some of about MOST_CALLS each: whole conversations and traces,
    those without content last, and long ones by time, from the last call on that is stored."""
    groups: dict[str, list[SentSpan]] = {}
    part: list[SentSpan] = []  # spans of no call are in the first
    for sent in (sent for request in requests for sent in sent_spans(request)):
        (groups.setdefault(group_of(sent.span), []) if is_call(sent.span) else part).append(sent)
    parts, calls = [part], 0
    # Where spans of a response are in several groups, one with content keeps its usage.
    for name, group in sorted(groups.items(), key=_is_silent):
        group.sort(key=_time)
        for some in by_time(group, _time, MOST_CALLS, partial(stored_until, name)):
            if calls and calls + len(some) > MOST_CALLS:
                parts.append([])
                calls = 0
            parts[-1] += some
            calls += len(some)
    return [_written(part) for part in parts]


def _time(sent: SentSpan) -> int:
    return sent.span.at or 0


def _is_silent(group: tuple[str, Sequence[SentSpan]]) -> bool:
    calls = (traced_call_of(sent.span) for sent in group[1])
    return not any(one is not None and one.has_content for one in calls)


def _written(part: Iterable[SentSpan]) -> bytes:
    """A request of these spans."""
    resources = [
        {"resource": some[0].resource, "scopeSpans": [{"spans": [sent.raw for sent in some]}]}
        for _, sent in groupby(part, key=lambda sent: id(sent.resource))
        for some in [list(sent)]
    ]
    return json.dumps({"resourceSpans": resources or [{}]}, ensure_ascii=False).encode()


# Bounds


def _refuse_endless(data: bytes) -> None:
    if len(data) <= _LEAST * MOST_VALUES:
        return
    if data.lstrip()[:1] in (b"{", b"["):
        values = data.count(b"{") + data.count(b"[")
    else:
        values = sum(1 for _ in zip(_fields(data), range(MOST_VALUES + 1), strict=False))
    if values > MOST_VALUES:
        raise NotALog(
            f"The request has more than {MOST_VALUES:,} values. Let the exporter send fewer spans "
            "at a time."
        )


@cache
def _nested(message: Descriptor) -> Mapping[int, Descriptor]:
    """The messages in a message, by number of their field."""
    fields = message.fields_by_number.items()
    return {number: one.message_type for number, one in fields if one.message_type}


def _fields(data: bytes) -> Iterator[None]:
    """One for each field of a request in protobuf and of the messages in it, up to the first that
    is none. Parsed, empty messages take twenty times their bytes."""
    waiting = [(0, len(data), ExportTraceServiceRequest.DESCRIPTOR)]
    try:
        while waiting:
            at, end, message = waiting.pop()
            inner = _nested(message)
            while at < end:
                tag, at = _number(data, at)
                yield
                form = tag & 7
                if form == _LENGTH:
                    size, at = _number(data, at)
                    if tag >> 3 in inner:
                        waiting.append((at, min(at + size, end), inner[tag >> 3]))
                    at += size
                elif form == 0:
                    _, at = _number(data, at)
                else:
                    at += _FIXED[form]
    except (IndexError, KeyError):
        return


_LENGTH, _FIXED = 2, {1: 8, 5: 4}
"""Wire types of protobuf: bytes with their length, and numbers of so many bytes."""

_LONGEST = 63
"""Bits before the last part of a number."""


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and the place after it. Raises IndexError."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value, shift = value & 127, 7
    while data[at] >= 128:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if shift > _LONGEST:
            raise IndexError
    return value | data[at] << shift, at + 1
