"""The door: who asks before what is sent, limits, health, and the same headers everywhere."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from tests.conftest import Server, running, wait_until

LARGE = 9_000_000
CLOSE = "Connection: close"
SECURITY = {
    "content-security-policy",
    "cross-origin-opener-policy",
    "referrer-policy",
    "x-content-type-options",
    "x-frame-options",
}


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its disk is full for a while."""
    return own_server


@pytest.fixture(scope="module")
def key(served: Server) -> str:
    """A header with a valid key."""
    return f"Authorization: Bearer {served.new_key()}"


def head(target: str, *more: str, host: str = "localhost") -> bytes:
    """Method, path and headers of a request."""
    lines = [f"{target} HTTP/1.1", f"Host: {host}", *more, "", ""]
    return "\r\n".join(lines).encode()


def answer(server: Server, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and read until the server closes; status, headers and body."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(sent)
        got = b""
        while chunk := line.recv(65536):
            got += chunk
    lines, _, body = got.partition(b"\r\n\r\n")
    first, *rest = lines.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in rest)
    return int(first.split()[1]), {name.lower(): v for name, v in headers.items()}, body


FORM = "Content-Type: application/x-www-form-urlencoded"
PARTS = "Content-Type: multipart/form-data; boundary=x"
WRONG = "Authorization: Bearer clk_00000000000000000000000000000000000000000000000"


@pytest.mark.fault("E1")
@pytest.mark.parametrize("kind", [FORM, PARTS, "Content-Type: application/json"])
@pytest.mark.parametrize("more", ["X-Nothing: 1", WRONG, "Cookie: contextlab_session=stranger"])
@pytest.mark.parametrize("path", ["/login/", "/static/x", "/api/v1/sessions/x/messages", "/x/"])
def test_a_large_body_of_a_stranger_is_not_even_read(
    served: Server, path: str, more: str, kind: str
) -> None:
    # No byte of the body is sent: a server that waits for it would answer only after 60 seconds.
    sent = head(f"POST {path}", f"Content-Length: {LARGE}", kind, more, host="elsewhere.example")
    status, headers, body = answer(served, sent)
    assert (status, headers["connection"]) == (401, "close")
    said = "needs a valid key" if more == "X-Nothing: 1" else "unknown, revoked or expired"
    assert said in json.loads(body)["detail"]
    assert set(headers) >= SECURITY


@pytest.mark.fault("E2")
def test_a_chunked_body_of_a_stranger_is_read_no_further(served: Server) -> None:
    chunk = b"8000\r\n" + b"&" * 0x8000 + b"\r\n"
    sent = head("POST /login/", "Transfer-Encoding: chunked", FORM) + 3 * chunk
    assert answer(served, sent)[0] == 401


def test_a_large_body_with_a_key_or_a_session_is_read(served: Server, key: str) -> None:
    cookie = f"Cookie: contextlab_session={served.cookie}"
    for who in (key, cookie):
        body = b"x" * 300_000
        sent = head("POST /api/v1/nothing", f"Content-Length: {len(body)}", who, CLOSE)
        assert answer(served, sent + body)[0] == 404


def test_health_needs_no_host_and_no_chain(served: Server) -> None:
    for host in ("10.0.0.7:8765", "elsewhere.example", "[::1]"):
        status, headers, body = answer(served, head("GET /healthz", CLOSE, host=host))
        assert (status, json.loads(body)) == (200, {"status": "ok"})
        assert set(headers) >= SECURITY


@pytest.mark.fault("G10")
def test_every_answer_has_the_same_security_headers(served: Server, key: str) -> None:
    asked = {
        "a page": head("GET /login/", CLOSE),
        "a refused page": head("GET /nowhere/", CLOSE),
        "a file": head("GET /static/contextlab/manifest.json", CLOSE),
        "the API": head("GET /api/v1/sessions", CLOSE, key),
        "the API, anonymous": head("GET /api/v1/sessions", CLOSE),
        "health": head("GET /healthz", CLOSE),
        "readiness": head("GET /readyz", CLOSE),
        "a large body": head("POST /x", f"Content-Length: {10**9}"),
        "no HTTP": b"nonsense\r\n\r\n",
        "a header": head("GET /healthz", "X-Bad: a\x0bb", CLOSE),
        "a socket": head("GET /ws/live/", CLOSE, "Upgrade: websocket", "Connection: Upgrade"),
        "a foreign socket": head(
            "GET /ws/live/",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
            "Origin: http://elsewhere.example",
        ),
    }
    got = {name: answer(served, sent)[1] for name, sent in asked.items()}
    expected = {name: got["a page"][name] for name in SECURITY}
    for name, headers in got.items():
        assert {key: headers.get(key) for key in SECURITY} == expected, name


@contextmanager
def full_disk(server: Server) -> Iterator[None]:
    """No file of the server's process may grow."""
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.fault("A9")
def test_ready_is_who_can_write(served: Server) -> None:
    assert answer(served, head("GET /readyz", CLOSE, host="pod"))[0] == 200
    with full_disk(served):
        wait_until(lambda: ready(served) != 200)  # an answer is kept for a second
        status, headers, body = answer(served, head("GET /readyz", CLOSE))
        assert (status, headers["retry-after"]) == (503, "5")
        assert "disk" in json.loads(body)["detail"]
        assert answer(served, head("GET /healthz", CLOSE))[0] == 200
    wait_until(lambda: ready(served) == 200)


@pytest.mark.fault("A9")
def test_appends_to_a_full_disk_ask_to_come_again(served: Server, key: str) -> None:
    def append(text: str) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps({"messages": [{"role": "user", "content": text}]})
        more = (key, "Content-Type: application/json", f"Content-Length: {len(body)}", CLOSE)
        sent = head("POST /api/v1/sessions/full/messages", *more) + body.encode()
        return answer(served, sent)

    assert append("fits")[0] == 201
    with full_disk(served):
        status, headers, said = append("does not fit")
        assert (status, int(headers.get("retry-after", 0)) > 0) == (503, True), said
        stored = answer(served, head("GET /api/v1/sessions/full/messages", key, CLOSE))
        assert (stored[0], len(json.loads(stored[2])["messages"])) == (200, 1), "reads work"
    assert append("fits again")[0] == 201


def ready(server: Server) -> int:
    """The status of /readyz."""
    return answer(server, head("GET /readyz", CLOSE))[0]


def test_pipelined_and_kept_connections(served: Server, key: str) -> None:
    asked = head("GET /healthz") + head("GET /api/v1/sessions", key) + head("HEAD /healthz")
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as line:
        line.sendall(asked + head("GET /readyz", CLOSE))
        got = b""
        while chunk := line.recv(65536):
            got += chunk
    assert got.count(b"HTTP/1.1 200 OK") == 4
    assert got.index(b'"ok"') < got.index(b'"sessions"') < got.index(b'"ready"')


def test_a_client_that_goes_away_harms_no_one(served: Server, key: str) -> None:
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as line:
            line.sendall(head("GET /api/v1/sessions", key))
    assert answer(served, head("GET /api/v1/sessions", key, CLOSE))[0] == 200
    assert "failed" not in served.log


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that takes three connections from an address, and five in all, below /lab."""
    few = {"CONTEXTLAB_CONNECTIONS": "5", "CONTEXTLAB_CONNECTIONS_PER_ADDRESS": "3"}
    with running(tmp_path_factory.mktemp("narrow"), CONTEXTLAB_ROOT_PATH="/lab", **few) as server:
        yield server


@pytest.mark.fault("E4")
def test_connections_of_one_address_and_in_all(narrow: Server) -> None:
    lines = []
    for address in ("127.0.0.1",) * 3 + ("127.0.0.2",) * 2:
        line = socket.create_connection(("127.0.0.1", narrow.port), 60, (address, 0))
        lines.append(line)
        line.sendall(head("GET /healthz"))
        assert line.recv(12) == b"HTTP/1.1 200"
        if len(lines) == 3:
            assert b"127.0.0.1 has too many connections" in answer(narrow, b"")[2]
    with socket.create_connection(("127.0.0.1", narrow.port), 60, ("127.0.0.3", 0)) as line:
        assert line.recv(12) == b"HTTP/1.1 503"
    for line in lines:
        line.close()
    wait_until(lambda: answer(narrow, head("GET /healthz", CLOSE))[0] == 200)


def test_the_root_path_may_be_kept_or_removed_by_a_proxy(narrow: Server) -> None:
    wait_until(lambda: asked(narrow, "/lab/healthz")[0] == 200)  # once the last lines are closed
    for path in ("/lab/login/", "/login/"):
        status, body = asked(narrow, path)
        assert status == 200
        assert b'"/lab/' in body
    assert asked(narrow, "/labor/healthz")[0] == 404


def asked(server: Server, path: str) -> tuple[int, bytes]:
    """Status and body of a page."""
    line = HTTPConnection("127.0.0.1", server.port, timeout=60)
    line.request("GET", path, headers={"Connection": "close"})
    response = line.getresponse()
    return response.status, response.read()
