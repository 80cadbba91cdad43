"""Traces of agents that export them with OpenTelemetry (OTLP over HTTP)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.api.imports.imports import team_with_room
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal

router = Router(tags=["Imports"])

PROTOBUF, JSON = "application/x-protobuf", "application/json"
ENCODINGS = ("identity", "gzip")

_BYTES = {"schema": {"type": "string", "format": "binary"}}
OTLP = {
    "requestBody": {
        "required": True,
        "description": "ExportTraceServiceRequest in protobuf or JSON, as it is or gzipped.",
        "content": {PROTOBUF: _BYTES, JSON: {"schema": {}}},  # the job that reads it checks it
    },
    "responses": {
        200: {"content": {PROTOBUF: _BYTES, JSON: {"schema": {"type": "object"}}}},
    },
}


@router.post("traces", url_name="traces", openapi_extra=OTLP)
def traces(request: HttpRequest) -> HttpResponse:
    """Take spans from an OpenTelemetry exporter; a job makes sessions of their model calls.

    Set `OTEL_EXPORTER_OTLP_ENDPOINT` to the server's address and `/api`. Spans may come in any
    order and any number of requests; of requests that brought nothing new, no report is kept.
    """
    kind = request.content_type or ""
    if kind not in (PROTOBUF, JSON):
        raise Refusal(
            415,
            "Neither protobuf nor JSON",
            f"Send OTLP as `Content-Type: {PROTOBUF}` or `{JSON}`.",
        )
    if request.headers.get("Content-Encoding", "identity").lower() not in ENCODINGS:
        raise Refusal(415, "Unknown encoding", "Send the body as it is, or gzipped.")
    answer = _taken(request)
    if kind == PROTOBUF:
        answer.content, answer["Content-Type"] = b"", PROTOBUF
    return answer


@done_once
def _taken(request: HttpRequest) -> HttpResponse:
    """An ExportTraceServiceResponse that says nothing: all was taken. As JSON, which is kept."""
    team = team_with_room(request)
    if request.body:  # as it came: the job unpacks it, within the bounds of archives
        begin_upload(team, [BodyFile("OTLP traces", request.body)], actor=None)
    return json_answer({})
