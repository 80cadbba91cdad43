"""Spans of the real OpenTelemetry exporter become sessions."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import urllib.request
from codecs import BOM_UTF8
from typing import Any

import pytest
from django.utils import timezone
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compaction.tokens import counted
from sessions.actions.assessments import assess
from sessions.actions.imports import together, uploads
from sessions.actions.imports.imports import run_import
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running, attempt
from sessions.models import AuditEntry, Import, ImportFile, Job, Message, ModelCall, Session, Team
from tests.conftest import Server, wait_until
from tests.sessions.programs import Program, assert_problem

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "What grows in the harbor?"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "Kelp."}]}]
MORE = [{"role": "user", "parts": [{"type": "text", "content": "And where?"}]}]
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def spans() -> list[ReadableSpan]:
    """Model calls of one conversation, by the GenAI semantic conventions."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "gardener"}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    for prompt in (ASKED, [*ASKED, *SAID, *MORE]):
        with provider.get_tracer("test").start_as_current_span("chat claude-sonnet-5") as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.conversation.id": "harbor-1",
                    "gen_ai.request.model": "claude-sonnet-5",
                    "gen_ai.input.messages": json.dumps(prompt),
                    "gen_ai.output.messages": json.dumps(SAID),
                    "gen_ai.usage.input_tokens": 100,
                    "gen_ai.usage.output_tokens": 7,
                }
            )
    provider.shutdown()
    return list(kept.get_finished_spans())


def stored() -> tuple[int, int, list[str]]:
    """Messages, calls and sessions of all that was sent."""
    for one in Import.objects.filter(files__state=ImportFile.State.WAITING):
        run_import(one, counted, lambda done, total: None)
    names = sorted(Session.objects.values_list("external_id", flat=True))
    return Message.objects.count(), ModelCall.objects.count(), names


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs_wait")
class TestOperation:
    """In this process, without a server."""

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("kind", [PROTOBUF, JSON])
    def test_requests_of_each_form_make_the_same_session(
        self, program: Program, kind: str, packed: bool
    ):
        made = spans()
        for sent_now in (made[:1], made[1:], made, made):
            request = encode_spans(sent_now)
            body = request.SerializeToString() if kind == PROTOBUF else MessageToJson(request)
            data = body if isinstance(body, bytes) else body.encode()
            how = {"content_encoding": "gzip"} if packed else {}
            sent = gzip.compress(data) if packed else data
            answer = program.ask("POST", "/traces", sent, content_type=kind, **how)
            assert (answer.status_code, answer["Content-Type"]) == (200, kind)
            assert answer.content == (b"" if kind == PROTOBUF else b"{}")
        assert stored() == (4, 2, ["harbor-1"])

    def test_a_request_without_a_resource(self, program: Program):
        request = encode_spans(spans())
        for one in request.resource_spans:
            one.ClearField("resource")
        program.ask("POST", "/traces", request.SerializeToString(), content_type=PROTOBUF)
        assert stored() == (4, 2, ["harbor-1"])

    @pytest.mark.parametrize(("kind", "said"), [(PROTOBUF, b""), (JSON, b"{}")])
    def test_a_request_with_an_idempotency_key_is_taken_once(
        self, program: Program, kind: str, said: bytes
    ):
        request = encode_spans(spans())
        data = request.SerializeToString() if kind == PROTOBUF else MessageToJson(request).encode()
        for again in (False, True):
            answer = program.ask("POST", "/traces", data, content_type=kind, idempotency_key="a")
            assert (answer.status_code, answer["Content-Type"]) == (200, kind)
            assert (answer.content, "Idempotent-Replay" in answer) == (said, again)
        assert Import.objects.count() == 1

    def test_what_is_refused(self, program: Program):
        def status(code: int, body: bytes, kind: str, **how: str) -> None:
            assert_problem(program.ask("POST", "/traces", body, content_type=kind, **how), code)

        status(415, b"x", "text/plain")
        status(415, b"{}", JSON, content_encoding="br")
        status(401, b"{}", JSON, authorization="")
        assert not Import.objects.exists()

    def test_what_waits_is_bounded(self, program: Program, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(uploads, "MOST_WAITING", 1)
        Job.objects.create(team=Team.objects.get(), kind=uploads.KIND)
        for path, kind in (("/traces", JSON), ("/imports?name=a", "application/octet-stream")):
            answer = program.ask("POST", path, b"{}", content_type=kind)
            assert_problem(answer, 429)
            assert answer.headers["Retry-After"] == "10"
        assert not Import.objects.exists()

    def test_rows_grow_by_what_is_new(self, program: Program, settings: Any):
        entries = AuditEntry.objects.count()
        good = encode_spans(spans()).SerializeToString()
        for data, kept, failed in ((good, 1, 0), (good[:-9], 2, 1)):
            for _ in range(3):
                program.ask("POST", "/traces", data, content_type=PROTOBUF)
                job = jobs.claim(Job.objects.get(kind=uploads.KIND, state=Job.State.QUEUED).pk)
                assert job and job.token and attempt(job.pk, job.token)
            assert Import.objects.count() == ImportFile.objects.count() == kept
            assert Job.objects.filter(state=Job.State.FAILED).count() == failed
            assert Job.objects.filter(kind=uploads.KIND).count() == kept
        assert AuditEntry.objects.count() == entries
        assert not [*settings.DATA_DIR.glob("uploads/*")]
        assert stored() == (4, 2, ["harbor-1"])

    def test_those_of_both_encodings_are_read_as_one(self, program: Program):
        for one in spans() * 2:
            request = encode_spans([one])
            program.ask("POST", "/traces", request.SerializeToString(), content_type=PROTOBUF)
            program.ask("POST", "/traces", MessageToJson(request).encode(), content_type=JSON)
        job = jobs.claim(Job.objects.filter(kind=uploads.KIND).order_by("created")[0].pk)
        assert job and job.token and attempt(job.pk, job.token)
        paths = ImportFile.objects.values_list("path", "state").order_by("pk")
        assert list(paths) == [("OTLP traces (8 requests)", "new")]
        assert stored() == (4, 2, ["harbor-1"])

    @pytest.mark.parametrize("kind", [PROTOBUF, JSON])
    def test_requests_that_wait_are_read_as_one(self, program: Program, settings: Any, kind: str):
        made = [encode_spans([one]) for one in spans()]
        if kind == JSON:
            first, second = (MessageToJson(one).encode() for one in made)
            second = BOM_UTF8 + second
        else:
            first, second = (one.SerializeToString() for one in made)
        for data in (second, first[:-9], gzip.compress(first), second):
            packed = {"content_encoding": "gzip"} if data[:2] == b"\x1f\x8b" else {}
            program.ask("POST", "/traces", data, content_type=kind, **packed)
        job = jobs.claim(Job.objects.filter(kind=uploads.KIND).order_by("created")[0].pk)
        assert job and job.token and attempt(job.pk, job.token)
        assert Job.objects.get(kind=uploads.KIND).state == Job.State.PARTIAL
        files = ImportFile.objects.filter(import_run=Import.objects.get()).order_by("pk")
        assert [(one.path, one.state, one.calls) for one in files] == [
            ("OTLP traces (3 requests)", "new", 2),
            ("OTLP traces", "refused", 0),
        ]
        assert stored() == (4, 2, ["harbor-1"])
        assert not [*settings.DATA_DIR.glob("uploads/*")]

    def test_requests_that_failed_together_are_tried_alone(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ):
        for one in spans():
            data = encode_spans([one]).SerializeToString()
            program.ask("POST", "/traces", data, content_type=PROTOBUF)
        read = together.import_together
        first = Job.objects.filter(kind=uploads.KIND).order_by("created")[0].pk
        for fails in (True, False):
            broken = (lambda *_: 1 / 0) if fails else read
            monkeypatch.setattr(together, "import_together", broken)
            job = jobs.claim(first)
            assert job and job.token and attempt(job.pk, job.token) is not fails
            assert Job.objects.filter(kind=uploads.KIND).count() == 1 + (not fails)
        other = jobs.claim(Job.objects.exclude(pk=first).get(kind=uploads.KIND).pk)
        assert other and other.token and other.attempts == 2 and attempt(other.pk, other.token)
        assert stored() == (4, 2, ["harbor-1"])

    def test_an_attempt_that_lost_its_job_takes_nothing_along(self, program: Program):
        for one in spans():
            data = encode_spans([one]).SerializeToString()
            program.ask("POST", "/traces", data, content_type=PROTOBUF)
        job = jobs.claim(Job.objects.filter(kind=uploads.KIND).order_by("created")[0].pk)
        assert job and job.token
        jobs.put_back(job.pk, job.token)
        with pytest.raises(jobs.Lost):
            together.take_along(Running(job, job.token), Import.objects.get(job=job))
        assert Import.objects.count() == 2

    def test_long_sessions_are_measured_later(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ):
        def run(kind: str) -> Job:
            waiting = Job.objects.get(kind=kind, state=Job.State.QUEUED)
            job = jobs.claim(waiting.pk)
            assert job and job.token and attempt(job.pk, job.token)
            return waiting

        def send(one: ReadableSpan) -> None:
            data = encode_spans([one]).SerializeToString()
            program.ask("POST", "/traces", data, content_type=PROTOBUF)
            run(uploads.KIND)

        def usage() -> tuple[bool, int]:
            return Session.objects.values_list("measured", "usage_calls").get()

        monkeypatch.setattr(assess, "LONG", 0)
        monkeypatch.setattr(assess, "STEPS_PER_SECOND", 0.01)
        first, second = spans()
        send(first)
        assert usage() == (False, 0)
        measure = assess.measure

        def meanwhile(session: Session) -> None:
            measure(session)
            monkeypatch.setattr(assess, "measure", measure)
            send(second)

        monkeypatch.setattr(assess, "measure", meanwhile)
        run("assess")
        assert usage() == (False, 1)
        assert assess.ask_all(Team.objects.get()) is None, "its own job does it"
        assert run("assess").wake_after > timezone.now()
        assert usage() == (True, 2)
        assert not Job.objects.filter(kind="assess").exists()

    def test_what_is_no_request_is_refused_in_its_report(self, program: Program):
        broken = encode_spans(spans()).SerializeToString()[:-9]
        assert program.ask("POST", "/traces", broken, content_type=PROTOBUF).status_code == 200
        assert stored()[2] == []
        (file,) = ImportFile.objects.all()
        assert (file.state, "protobuf" in file.problems[0]) == ("refused", True)


@pytest.mark.parametrize("packed", [Compression.NoCompression, Compression.Gzip])
def test_the_exporter_of_opentelemetry_sends_to_a_server(served: Server, packed: Compression):
    key = token(served)
    at = f"{served.address}/api/v1/traces"
    exporter = OTLPSpanExporter(at, headers={"Authorization": f"Bearer {key}"}, compression=packed)
    assert exporter.export(spans()) is SpanExportResult.SUCCESS
    exporter.shutdown()
    wait_until(lambda: "harbor-1" in names(served, key))
    without = OTLPSpanExporter(at, compression=packed)
    assert without.export(spans()) is SpanExportResult.FAILURE
    without.shutdown()


def token(served: Server) -> str:
    """A key of the server's own."""
    made = subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "token", "create"],
        env={**os.environ, "CONTEXTLAB_DATA_DIR": str(served.data_dir), "DATABASE_URL": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return next(word for word in made.split() if word.startswith("clk_"))


def names(served: Server, key: str) -> list[str]:
    """The ids of the server's sessions."""
    return [one["external_id"] for one in sessions_of(served, key)]


def sessions_of(served: Server, key: str) -> list[Any]:
    """The server's sessions."""
    asked: Any = urllib.request.Request(
        f"{served.address}/api/v1/sessions", headers={"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(asked) as answer:
        listed: list[Any] = json.loads(answer.read())["sessions"]
        return listed
