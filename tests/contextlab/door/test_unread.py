"""A page that never reads: its socket is dropped, and those that read stay."""

from __future__ import annotations

import select
import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.conftest import Server, wait_until
from tests.contextlab.door.test_stopping import watching

SETTINGS = "tests.contextlab.door.quick_ping_settings"
PING, PONG = 0x89, 0x8A


def reading(line: socket.socket, pings: list[bytes]) -> None:
    """Answer each ping as a browser does, until the socket is closed."""
    with suppress(OSError):  # the test has ended
        while frame := line.recv(2):
            content = line.recv(frame[1]) if frame[1] else b""
            if frame[0] == PING:
                pings.append(content)
                answer = bytes([PONG, 0x80 | len(content)]) + bytes(4) + content
                line.sendall(answer)


def is_dropped(line: socket.socket) -> bool:
    """Whether the other side has reset a connection, without reading from it."""
    poll = select.poll()
    poll.register(line, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


@pytest.mark.fault("J3")
def test_a_page_that_never_reads_is_dropped_and_others_stay(
    server_with: Callable[..., Server],
) -> None:
    server = server_with(DJANGO_SETTINGS_MODULE=SETTINGS)
    pings: list[bytes] = []
    with watching(server) as read, watching(server) as unread:
        threading.Thread(target=reading, args=(read, pings), daemon=True).start()
        wait_until(lambda: is_dropped(unread))
        before = len(pings)
        wait_until(lambda: len(pings) > before)
        assert not is_dropped(read)
        assert urllib.request.urlopen(f"{server.address}/healthz").status == 200
