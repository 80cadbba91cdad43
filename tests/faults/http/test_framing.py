"""Requests whose lengths, headers or addresses lie: refused, and none is taken for two."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.conftest import Server
from tests.contextlab.door.test_door import CLOSE, answer, head

APPEND = "POST /api/v1/sessions/framed/messages"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
BODY = b'{"messages":[{"role":"user","content":"a parcel"}]}'
LENGTH = f"Content-Length: {len(BODY)}"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
SMUGGLED = (
    b"DELETE /api/v1/sessions/framed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
)


@pytest.fixture(scope="module")
def token(served: Server) -> str:
    return served.new_key()


@pytest.fixture(scope="module")
def key(token: str) -> str:
    """A header with a valid key."""
    return f"Authorization: Bearer {token}"


def statuses(server: Server, sent: bytes) -> list[int]:
    """The statuses of all answers on one connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(sent)
        got = b""
        while chunk := line.recv(65536):
            got += chunk
    return [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]


def stored(server: Server, key: str) -> list[Any]:
    """The messages of the session."""
    status, _, body = answer(server, head("GET /api/v1/sessions/framed/messages", key, CLOSE))
    return json.loads(body)["messages"] if status == 200 else []


@pytest.mark.fault("E3")
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (["Content-Length: -5"], BODY),
        (["Content-Length: 5x"], BODY),
        (["Content-Length: +45"], BODY),
        ([LENGTH, "Content-Length: 5"], BODY),
        ([LENGTH, LENGTH], BODY),
        (["Content-Length: 4", CHUNKED], CHUNKS),
        ([CHUNKED, "Content-Length: 4"], CHUNKS),
        ([CHUNKED, "Transfer-Encoding: identity"], CHUNKS),
        (["Transfer-Encoding: xchunked"], CHUNKS),
        ([f"Content-Length : {len(BODY)}"], BODY),
        ([CHUNKED], b"zz\r\n" + BODY),
        (["Content-Length: 5"], BODY),
    ],
)
def test_a_length_that_lies(served: Server, key: str, headers: list[str], body: bytes) -> None:
    sent = head(APPEND, key, JSON, *headers) + body + SMUGGLED
    # What is cut short is invalid JSON, and what follows it no request.
    assert set(statuses(served, sent)) == {400}
    assert stored(served, key) == []


@pytest.mark.fault("E3")
def test_without_a_length_there_is_no_body(served: Server, key: str) -> None:
    sent = head(APPEND, key, JSON) + head("GET /healthz", CLOSE)
    assert statuses(served, sent) == [422, 200]


@pytest.mark.fault("E6")
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ([f"X-{number}: y" for number in range(2000)], 400),
        (["X-Large: " + "y" * 100_000], 431),
        (["X-Fits: " + "y" * 10_000], 200),
        ([f"X-Same: {number}" for number in range(100)], 200),
    ],
    ids=["many", "large", "fits", "repeated"],
)
def test_many_and_large_headers(served: Server, more: list[str], status: int) -> None:
    found, _, body = answer(served, head("GET /healthz", *more, CLOSE))
    assert (found, json.loads(body)["status"]) == (status, "ok" if status == 200 else status)


@pytest.mark.fault("E7")
@pytest.mark.parametrize("charset", ["utf-16", "latin-1", "utf-7"])
def test_another_character_set(served: Server, key: str, charset: str) -> None:
    sent = head(APPEND, key, f"{JSON}; charset={charset}", LENGTH, CLOSE) + BODY
    assert answer(served, sent)[0] == 415
    assert stored(served, key) == []


@pytest.mark.fault("E10")
@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("GET /sessions/", ["Host: elsewhere.example"], 400),
        ("GET http://elsewhere.example/api/v1/sessions", [], 404),
        ("GET //elsewhere.example/api/v1/sessions", [], 404),
        ("GET /api/v1/sessions", ["Authorization: Bearer x"], 401),
    ],
)
def test_another_address(
    served: Server, key: str, target: str, headers: list[str], status: int
) -> None:
    assert answer(served, head(target, key, *headers, CLOSE))[0] == status


@pytest.mark.fault("E10")
def test_a_request_without_a_host(served: Server, key: str) -> None:
    sent = f"GET /api/v1/sessions HTTP/1.1\r\n{key}\r\n\r\n".encode()
    status, headers, body = answer(served, sent)
    assert (status, headers["connection"]) == (400, "close")
    assert "Host" in json.loads(body)["detail"]


@pytest.mark.fault("E10")
def test_forwarding_headers_of_a_client_move_nothing(served: Server, key: str) -> None:
    made = head("PUT /api/v1/sessions/linked", key, JSON, "Content-Length: 2", CLOSE) + b"{}"
    assert answer(served, made)[0] == 201
    claims = ["X-Forwarded-Host: elsewhere.example", "X-Forwarded-Proto: https"]
    claims += ["X-Forwarded-For: 203.0.113.7", "Daphne-Root-Path: /moved", "Forwarded: host=x"]
    status, headers, body = answer(served, head("GET /api/v1/sessions/linked", key, *claims, CLOSE))
    assert status == 200
    assert "elsewhere" not in body.decode() and "/moved" not in body.decode()
    assert "strict-transport-security" not in headers
    assert "203.0.113.7" not in served.log


@pytest.mark.fault("E11")
@pytest.mark.parametrize(
    ("target", "status"),
    [("TRACE /api/v1/sessions", 405), ("CONNECT elsewhere.example:443", 404)],
)
def test_methods_that_are_none_of_ours(served: Server, key: str, target: str, status: int) -> None:
    found, _, body = answer(served, head(target, key, CLOSE))
    assert found == status
    assert key.encode() not in body, "nothing is echoed"


@pytest.mark.fault("E11")
def test_a_method_cannot_be_overridden(served: Server, key: str) -> None:
    more = ["X-HTTP-Method-Override: DELETE", "X-Method-Override: DELETE", JSON, LENGTH, CLOSE]
    sent = head("POST /api/v1/sessions/kept/messages", key, *more) + BODY
    assert answer(served, sent)[0] == 201
