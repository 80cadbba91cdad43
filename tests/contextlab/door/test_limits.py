"""The door: too large and too slow are refused before anything is kept."""

import json
import socket
import subprocess
import sys

import pytest

from tests.conftest import running

FORM = """
import django
django.setup()
import daphne.server
from contextlab.door.request import DoorRequest
from twisted.web.test.requesthelper import DummyChannel

class Channel(DummyChannel):
    _path = b"/static/x"

    class factory:
        class server:
            class door:
                arriving = {}

DoorRequest.process = lambda request: print(vars(request).get("args"), request.content.read())
request = DoorRequest(Channel(), False)
request.requestHeaders.setRawHeaders(b"Content-Type", [b"application/x-www-form-urlencoded"])
request.gotLength(3)
request.handleContentChunk(b"a=b")
request.requestReceived(b"POST", b"/static/x", b"HTTP/1.1")
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server that takes 0.1 MB, and 0.2 MB below /imports/, within two seconds."""
    sizes = {"CONTEXTLAB_BODY_MB": "0.1", "CONTEXTLAB_UPLOAD_MB": "0.2"}
    with running(tmp_path_factory.mktemp("small"), CONTEXTLAB_BODY_SECONDS="2", **sizes) as server:
        yield server


@pytest.fixture(scope="module")
def key(small) -> str:
    """A header with a valid key."""
    return f"Authorization: Bearer {small.new_key()}"


def exchange(server, sent: bytes) -> tuple[int, bytes]:
    """Sends bytes as they are; returns status and body of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(sent)
        answer = b""
        while chunk := line.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def post(length: int, path: str = "/api/v1/nothing", *more: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    return "\r\n".join([*head, f"Content-Length: {length}", *more, "", ""]).encode()


@pytest.mark.fault("E1")
def test_a_body_that_says_it_is_too_large(small):
    status, body = exchange(small, post(10**9) + b"x" * 1000)
    assert status == 413
    assert json.loads(body)["status"] == 413
    assert "0.1 MB" in json.loads(body)["detail"]


def test_the_sender_reads_why_even_while_it_sends_on(small):
    status, body = exchange(small, post(2_000_000) + b"x" * 2_000_000)
    assert status == 413
    assert json.loads(body)["title"] == "Content Too Large"


@pytest.mark.fault("E2")
def test_a_chunked_body_is_counted(small, key):
    head = post(0, "/api/v1/nothing", key, "Transfer-Encoding: chunked")
    head = head.replace(b"Content-Length: 0\r\n", b"")
    status, _ = exchange(
        small, head + b"4000\r\n" + b"x" * 0x4000 + (b"\r\n4000\r\n" + b"x" * 0x4000) * 9
    )
    assert status == 413


def test_uploads_may_be_larger(small, key):
    size = 150_000
    assert exchange(small, post(size, "/api/v1/imports", key) + b"x" * size)[0] < 300
    assert exchange(small, post(size, "/api/v1/nothing", key) + b"x" * size)[0] == 413


@pytest.mark.fault("E4")
def test_a_body_that_never_arrives(small):
    status, body = exchange(small, post(1000) + b"x")
    assert status == 408
    assert "2 seconds" in json.loads(body)["detail"]


@pytest.mark.fault("E4")
def test_headers_that_never_end(small):
    status, _ = exchange(small, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    assert status == 408


@pytest.mark.fault("E4")
def test_many_slow_connections_at_once(small):
    begun = (post(9) + b"{", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    lines = []
    for number in range(60):
        lines.append(socket.create_connection(("127.0.0.1", small.port), timeout=60))
        lines[-1].sendall(begun[number % 2])
    assert exchange(small, post(2) + b"{}")[0] == 404, "others are served meanwhile"
    for line in lines:
        line.sendall(b"-")  # a byte now and then wins no time
        assert line.recv(12) == b"HTTP/1.1 408"
        line.close()


def test_the_server_lives_on(small):
    status, body = exchange(
        small, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert status == 200
    assert b"ok" in body


def test_the_loop_parses_no_form(monkeypatch):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    command = [sys.executable, "-c", FORM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "None b'a=b'"
