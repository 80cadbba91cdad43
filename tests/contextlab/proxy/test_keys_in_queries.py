"""A provider's key in a request's query: passed on, and kept nowhere."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from contextlab.client import ContextLab
from tests.conftest import Server
from tests.contextlab.client.test_client import lab
from tests.contextlab.proxy.test_proxy import NOWHERE, key_of, proxy

__all__ = ["lab"]

SECRET = "AIza-not-to-be-seen"
PATH = f"gemini/v1beta/models/gemini-3.1-pro-preview:generateContent?key={SECRET}"
ANSWER = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
}


@pytest.fixture
def upstream() -> Iterator[tuple[str, list[str]]]:
    """The address of a provider, and the paths that it was asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(ANSWER).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_it_reaches_the_provider_and_is_kept_nowhere(
    lab: ContextLab,
    served: Server,
    upstream: tuple[str, list[str]],
    caplog: pytest.LogCaptureFixture,
    mode: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    name = f"query-{mode}"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello."}]}]}
    address, paths = upstream
    for at in (address, NOWHERE):  # failures are logged, too
        with proxy(lab.url, {"gemini": at}) as url:
            headers = {"x-contextlab-session": name}
            there = f"{url}/{key_of(lab)}/{mode}/{PATH}"
            answer = httpx2.post(there, json=body, headers=headers, timeout=60)
            assert answer.status_code == (200 if at == address else 502)
            assert SECRET not in answer.text
    assert [path.endswith(f"?key={SECRET}") for path in paths] == [True]
    assert lab.request("GET", f"sessions/{name}")["messages"] == 2
    assert SECRET not in lab.download(f"sessions/{name}/export").decode()
    stored = [path for path in served.data_dir.rglob("*") if path.is_file()]
    assert stored and not any(SECRET.encode() in path.read_bytes() for path in stored)
    ours = [one for one in caplog.records if not one.name.startswith("asyncio")]
    assert not any(SECRET in one.getMessage() for one in ours)
