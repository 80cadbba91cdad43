"""SIGTERM ends the server in time, whatever is under way, and loses nothing it acknowledged."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contextlab.client import ContextLab
from tests.conftest import Server, start_server, wait_until
from tests.empty_store import with_tables

REQUESTS = 20
PROMISED_SECONDS = 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of its own for each test."""
    server = start_server(with_tables(tmp_path))
    yield server
    server.kill()


def said(step: int) -> dict[str, Any]:
    """A batch of one message; each is another, because known ones are not stored again."""
    return {"messages": [{"role": "user", "content": f"Step {step}."}]}


class Senders:
    """Twenty threads that append until the server is gone, and what it acknowledged to each."""

    def __init__(self, server: Server, token: str) -> None:
        self.acknowledged = [0] * REQUESTS
        self.begun = [0] * REQUESTS
        headers = {"Authorization": f"Bearer {token}"}

        def send(number: int) -> None:
            with httpx2.Client(base_url=f"{server.address}/api/v1/", headers=headers) as client:
                while True:
                    self.begun[number] += 1
                    try:
                        answer = client.post(
                            f"sessions/s{number}/messages",
                            json=said(self.begun[number]),
                            timeout=60,
                        )
                    except httpx2.TransportError:
                        return
                    if answer.status_code != 201:
                        return
                    self.acknowledged[number] += 1

        self.threads = [threading.Thread(target=send, args=(n,)) for n in range(REQUESTS)]
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        """All have met the end."""
        for thread in self.threads:
            thread.join()


def end(server: Server) -> int:
    """SIGTERM; the exit code. Raises TimeoutExpired after the time that is promised."""
    server.process.terminate()
    return server.process.wait(PROMISED_SECONDS)


def stored(data_dir: Path) -> dict[str, int]:
    """How many messages each session has."""
    with closing(sqlite3.connect(data_dir / "contextlab.sqlite3")) as database:
        rows = database.execute(
            "SELECT s.external_id, count(*) FROM agent_sessions_message m"
            " JOIN agent_sessions_session s ON s.id = m.session_id GROUP BY 1"
        )
        return dict(rows.fetchall())


def watching(server: Server) -> socket.socket:
    """A page's open socket."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    lines = [
        "GET /ws/live/ HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Origin: http://127.0.0.1:{server.port}",
        f"Cookie: contextlab_session={server.cookie}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
    ]
    line.sendall("\r\n".join([*lines, "", ""]).encode())
    assert line.recv(1000).startswith(b"HTTP/1.1 101")
    return line


def until_closed(line: socket.socket) -> None:
    """Wait until the server closes a socket, with a close frame or at once; else time out."""
    with suppress(ConnectionResetError):
        while (got := line.recv(1000)) and got[:1] != b"\x88":
            pass


@pytest.mark.fault("J2")
def test_a_socket_that_sends_too_much_is_closed(server: Server) -> None:
    too_long = b"\x81\xff" + (2 << 20).to_bytes(8, "big") + bytes(4)
    binary = b"\x82\x82" + bytes(4) + b"\xff\xff"
    for sent in (too_long, binary):
        with watching(server) as line:
            line.sendall(sent)
            until_closed(line)


def uploading(server: Server, token: str) -> socket.socket:
    """A half-arrived body."""
    line = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    lines = ["POST /api/v1/imports HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
    line.sendall("\r\n".join([*lines, "Content-Length: 5000000", "", ""]).encode())
    line.sendall(b"x" * 2_500_000)
    return line


@pytest.mark.fault("A4")
@pytest.mark.parametrize("round", range(4))
def test_twenty_requests_a_page_and_an_upload_under_way(server: Server, round: int) -> None:
    token = server.new_key()
    with watching(server), uploading(server, token):
        senders = Senders(server, token)
        wait_until(lambda: sum(senders.acknowledged) > 5 * round)
        assert end(server) == 0
        senders.join()
    assert "Traceback" not in server.log
    kept = stored(server.data_dir)
    for number in range(REQUESTS):
        # One more may be stored whose answer did not arrive.
        more = kept.get(f"s{number}", 0) - senders.acknowledged[number]
        assert 0 <= more <= 1


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """The database's lock, held by someone else."""
    with closing(sqlite3.connect(data_dir / "contextlab.sqlite3", isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")
        yield
        held.execute("ROLLBACK")


@pytest.mark.fault("A4")
def test_twenty_requests_that_cannot_end(server: Server) -> None:
    token = server.new_key()
    with ContextLab(server.address, token) as lab:
        lab.session("s0")
    with locked(server.data_dir):
        senders = Senders(server, token)
        wait_until(lambda: all(senders.begun))
        until_they_wait(server, token)
        assert end(server) == 0
        senders.join()
    assert "requests in progress" in server.log
    assert sum(senders.acknowledged) == 0
    assert stored(server.data_dir) == {}


def until_they_wait(server: Server, token: str) -> None:
    """A read returns, so all that came before it has been taken in."""
    with httpx2.Client(headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.get(f"{server.address}/healthz").status_code == 200
