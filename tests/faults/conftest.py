"""A probe that asks /healthz of every server throughout every fault, and what it found."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.conftest import STARTED, Server

GOAL_MS = 250
PAUSE_SECONDS = 0.02
_ASK = b"GET /healthz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"


class Answer(NamedTuple):
    """How long a server took, and during which test."""

    ms: float
    test: str


class Probe(threading.Thread):
    """Asks the servers in turn; servers that are killed or stopped meanwhile do not count."""

    def __init__(self) -> None:
        super().__init__(name="probe", daemon=True)
        self.answers: list[Answer] = []
        self.test = ""
        self.wanted = threading.Event()

    def run(self) -> None:
        # Not time.sleep, which tests of the same process replace.
        pause = threading.Event()
        while self.wanted.wait():
            for server in [one for one in STARTED if one.process.poll() is None]:
                self._ask(server, self.test)
            pause.wait(PAUSE_SECONDS)

    def _ask(self, server: Server, test: str) -> None:
        began = time.perf_counter()
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
                line.sendall(_ASK)
                answered = line.recv(12) == b"HTTP/1.1 200"
        except OSError:
            answered = False
        ms = (time.perf_counter() - began) * 1000
        if answered or server.process.poll() is None:
            self.answers.append(Answer(ms, test))


_probe = Probe()


@pytest.fixture(autouse=True)
def probed(request: pytest.FixtureRequest) -> Iterator[None]:
    """The probe asks while a test of faults runs."""
    if not _probe.is_alive():
        _probe.start()
    _probe.test = request.node.nodeid
    _probe.wanted.set()
    yield
    _probe.wanted.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest answers, one of each test."""
    worst: dict[str, Answer] = {}
    for answer in sorted(_probe.answers):
        worst[answer.test] = answer
    if not worst:
        return
    terminalreporter.section(f"/healthz during faults (goal {GOAL_MS} ms)")
    for answer in sorted(worst.values(), reverse=True)[:5]:
        terminalreporter.write_line(f"{answer.ms:8.1f} ms  {answer.test}")
    below = sum(answer.ms <= GOAL_MS for answer in _probe.answers)
    terminalreporter.write_line(f"{below} of {len(_probe.answers)} answers within the goal")
