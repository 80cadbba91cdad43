"""Figures for Prometheus, and logs without content, of a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from contextlab.version import version
from tests.conftest import ROOT, Server, wait_until
from tests.empty_store import with_tables

Start = Callable[..., Server]
SECRET = "the-secret-content"


def ask(
    server: Server, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Send a request; return status, headers and body."""
    line = HTTPConnection("127.0.0.1", server.port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        line.request(method, path, None if body is None else json.dumps(body), named)
        answer = line.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        line.close()


def figures(server: Server, **headers: str) -> dict[tuple[str, ...], float]:
    """The values of `/metrics` by name and labels."""
    status, _, body = ask(server, "GET", "/metrics", **headers)
    assert status == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def work(server: Server, key: str) -> None:
    """A session with a message and a managed context."""
    headers = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
    path = "/api/v1/sessions/s"
    assert ask(server, "PUT", path, {"policy": "offload-first"}, **headers)[0] == 201
    messages = {"messages": [{"role": "user", "content": SECRET}]}
    assert ask(server, "POST", f"{path}/messages", messages, **headers)[0] in (200, 201)
    assert ask(server, "GET", f"{path}/context", **headers)[0] == 200
    assert ask(server, "GET", f"/sessions/x/?q={SECRET}")[0] in (302, 403, 404)


@pytest.fixture
def worked(server_with: Start, tmp_path: Path) -> Iterator[Server]:
    """A server that writes all it can into its log, after some work."""
    server = server_with(
        CONTEXTLAB_ACCESS_LOG="1", CONTEXTLAB_LOG_FORMAT="json", CONTEXTLAB_LOG_LEVEL="INFO"
    )
    work(server, server.new_key())
    yield server


def test_figures_of_requests_folds_messages_and_jobs(worked: Server) -> None:
    wait_until(lambda: ("contextlab_jobs_ended_total", "tend", "done") in figures(worked))
    found = figures(worked)
    messages = "api/v1/sessions/<path:session_id>/messages"
    assert found["contextlab_requests_total", "POST", messages, "201"] == 1
    assert found["contextlab_request_seconds_count", messages] == 1
    assert found["contextlab_messages_total", "messages"] == 1
    assert found["contextlab_folds_total", "rebuilt"] >= 1
    assert found["contextlab_fold_seconds_count",] >= 1
    assert found["contextlab_requests_running",] == found["contextlab_requests_waiting",] == 0
    assert found["contextlab_connections",] == 1, "this one"
    assert found["contextlab_build_info", version()] == 1
    assert found["contextlab_jobs", "import", "failed"] == 0
    assert found["process_resident_memory_bytes",] > 1e6
    assert not any(SECRET in label for names in found for label in names)


def test_a_queue_that_grows_is_seen(worked: Server) -> None:
    from tests.faults.test_server_killed import enqueue

    settings = {"DJANGO_SETTINGS_MODULE": "tests.sessions.job_settings"}
    enqueue(worked.data_dir, "until", {"note": "x"}, settings)  # unknown to this server: it fails
    wait_until(lambda: figures(worked).get(("contextlab_jobs", "until", "failed")) == 1)
    assert figures(worked)["contextlab_job_oldest_seconds", "until", "failed"] >= 0


@pytest.mark.fault("K1")
def test_logs_are_json_with_the_requests_id_and_no_content(worked: Server) -> None:
    status, headers, _ = ask(worked, "GET", f"/nothing?q={SECRET}", X_Request_ID="mine-1")
    assert (status, headers["X-Request-Id"]) == (404, "mine-1")
    _, headers, _ = ask(worked, "GET", "/healthz", X_Request_ID=f"{SECRET} and more")
    assert re.fullmatch("[0-9a-f]{16}", headers["X-Request-Id"])
    wait_until(lambda: "mine-1" in worked.log)
    lines = [json.loads(line) for line in worked.log.splitlines() if line.startswith("{")]
    mine = [line for line in lines if line.get("request") == "mine-1"]
    assert {line["logger"] for line in mine} >= {"contextlab.access"}
    access = [line for line in lines if line["logger"] == "contextlab.access"]
    assert {"method", "route", "status", "ms", "received", "sent", "time"} <= access[0].keys()
    assert SECRET not in worked.log and "clk_" not in worked.log


def test_the_figures_need_a_token_where_there_is_one(server_with: Start) -> None:
    server = server_with(CONTEXTLAB_METRICS_TOKEN="t0ken")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "t0ken"}):
        assert ask(server, "GET", "/metrics", **headers)[0] == 404
    assert figures(server, Authorization="Bearer t0ken")


def test_a_server_that_others_can_reach_shows_none_without_a_token(server_with: Start) -> None:
    server = server_with(CONTEXTLAB_ALLOWED_HOSTS="lab.example.com")
    assert ask(server, "GET", "/metrics")[0] == 404


class _Collector(BaseHTTPRequestHandler):
    names: list[str] = []

    def do_POST(self) -> None:
        sent = ExportTraceServiceRequest.FromString(
            self.rfile.read(int(self.headers["Content-Length"]))
        )
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                self.names += [f"{span.name} {span.attributes}" for span in scope.spans]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_spans_of_requests_and_jobs_without_content(server_with: Start, tmp_path: Path) -> None:
    collector = HTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    server = server_with(
        CONTEXTLAB_TRACES="1",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server_port}",
        OTEL_BSP_SCHEDULE_DELAY="100",
    )
    try:
        work(server, server.new_key())
        route = "POST api/v1/sessions/<path:session_id>/messages"
        for name in (route, "job tend"):
            wait_until(lambda name=name: any(one.startswith(name) for one in _Collector.names))
        assert SECRET not in str(_Collector.names)
        assert server.stop() == 0
    finally:
        collector.shutdown()
        collector.server_close()


def test_a_worker_whose_figures_have_no_address_says_so_and_ends(
    tmp_path: Path, redis_url: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "worker"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CONTEXTLAB_DATA_DIR": str(with_tables(tmp_path)),
            "DATABASE_URL": "",
            "REDIS_URL": redis_url,
            "CONTEXTLAB_WORKER_METRICS": "nowhere",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONTEXTLAB_WORKER_METRICS is host:port, not 'nowhere'." in ended.stderr
    assert "restarting" not in ended.stderr
    assert ended.returncode == 2
