"""Requests that froze a server for seconds: each is refused or answered, while the probe asks."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.conftest import Server, wait_until
from tests.faults.store import in_data_dir

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=x"
JSON = "application/json"
AT_ONCE = 4


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """It is kept busy, and its store audited."""
    return own_server


@pytest.fixture(scope="module")
def token(served: Server) -> str:
    return served.new_key()


def ask(server: Server, method: str, path: str, body: bytes, **headers: str) -> int:
    """The status of the answer, which may come before the body was sent."""
    line = HTTPConnection("127.0.0.1", server.port, timeout=120)
    with suppress(BrokenPipeError, ConnectionResetError):
        line.request(method, path, body, {n.replace("_", "-"): v for n, v in headers.items()})
    try:
        return line.getresponse().status
    finally:
        line.close()


def at_once(server: Server, *given: Any, **headers: str) -> set[int]:
    """The statuses of a few such requests together."""
    statuses: set[int] = set()
    threads = [
        threading.Thread(target=lambda: statuses.add(ask(server, *given, **headers)))
        for _ in range(AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


@pytest.mark.parametrize("path", ["/login/", "/static/x", "/api/v1/sessions", "/nowhere/"])
def test_a_form_of_ten_megabytes_from_a_stranger(served: Server, path: str) -> None:
    assert at_once(served, "POST", path, b"&" * 9_900_000, Content_Type=FORM) == {401}


def test_a_form_of_ten_megabytes_with_a_session(served: Server) -> None:
    who = {"Cookie": f"contextlab_session={served.cookie}", "Content_Type": FORM}
    assert at_once(served, "POST", "/logout/", b"&" * 9_900_000, **who) == {403}


def test_many_parts(served: Server, token: str) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    who = {"Authorization": f"Bearer {token}", "Content_Type": PARTS}
    body = part * 1_000_000 + b"--x--\r\n"
    assert max(at_once(served, "POST", "/api/v1/imports", body, **who)) < 500


def test_honest_uploads_and_the_job_that_reads_them(served: Server, token: str) -> None:
    who = {"Authorization": f"Bearer {token}"}
    message = {"role": "user", "content": "a line of a log\n" * 1_000}
    body = json.dumps({"messages": [message] * 1_200}).encode()
    assert len(body) > 19_000_000
    assert 202 in at_once(served, "POST", "/api/v1/imports", body, **who) <= {202, 429}
    form = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    form += body + b"\r\n--x--\r\n"
    sent = at_once(served, "POST", "/api/v1/imports", form, Content_Type=PARTS, **who)
    assert 202 in sent <= {202, 429}
    store = in_data_dir(served.data_dir)
    waiting = "SELECT 1 FROM agent_sessions_job WHERE state IN ('queued', 'running')"
    wait_until(lambda: not store.rows(waiting))


@pytest.mark.fault("F5", "F8")
@pytest.mark.parametrize(
    ("content", "status"),
    [
        ([{"type": "text", "text": "x"}] * 200_000, 413),
        ([{"type": "text", "text": "x"}] * 1000, 201),
        ("a\n" + "\n" * 6000 + "b", 201),
        ("word " * 1_000_000, 201),
        ("a" * 5_000_000, 201),
    ],
    ids=["blocks", "fewer blocks", "line breaks", "words", "one word"],
)
def test_content_that_is_expensive(served: Server, token: str, content: Any, status: int) -> None:
    who = {"Authorization": f"Bearer {token}", "Content_Type": JSON}
    messages = [{"role": "user", "content": content} for _ in range(7 if status == 201 else 1)]
    if isinstance(content, str) and len(content) > 1_000_000:
        messages = messages[:1]
    body = json.dumps({"messages": messages}).encode()
    path = f"/api/v1/sessions/{abs(hash(body))}"
    assert ask(served, "POST", f"{path}/messages", body, **who) == status
    if status == 201:
        assert ask(served, "GET", f"{path}/context", b"", **who) == 200
        for page in ("entry?i=0", "manifest?packed=true", "previews", "diff?a=1&b=2"):
            assert ask(served, "GET", f"{path}/{page}", b"", **who) == 200


@pytest.mark.fault("F4")
def test_brackets(served: Server, token: str) -> None:
    who = {"Authorization": f"Bearer {token}", "Content_Type": JSON}
    for body in (b"[" * 60_000, b"[" * 9_900_000, b'{"messages":' * 60_000):
        status = ask(served, "POST", "/api/v1/sessions/x/messages", body, **who)
        assert status in (400, 413)
