"""The client waits as long as the server asks, until it has no patience left."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest

from contextlab.client import ContextLab, Unreachable
from contextlab.client.connection import Connection
from tests.conftest import start_server
from tests.empty_store import with_tables
from tests.faults.live_agent import new_token

CLIENTS, STEPS = 50, 3


class Clock:
    """Time that passes only during sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.slept = 0.0, list[float]()
        monkeypatch.setattr("contextlab.client.connection.time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def answering(*answers: httpx2.Response | Exception, patience: float = 180) -> Any:
    """A connection whose server gives these answers, the last one for ever, and their requests."""
    asked: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        given = answers[min(len(asked), len(answers)) - 1]
        if isinstance(given, Exception):
            raise given
        return given

    connection = Connection("http://nowhere", "clk_x", patience=patience)
    connection._http = httpx2.Client(
        base_url="http://nowhere/api/v1/", transport=httpx2.MockTransport(answer)
    )
    return connection, asked


BUSY = httpx2.Response(429, headers={"Retry-After": "7"})
AWAY = httpx2.ConnectError("refused")
DONE = httpx2.Response(200, json={"done": True})


def test_it_waits_what_retry_after_says_and_a_little_more(clock: Clock) -> None:
    connection, asked = answering(*[BUSY] * 9, DONE)
    assert connection.request("POST", "x") == {"done": True}
    assert len(clock.slept) == 9
    assert all(7 <= seconds <= 10.5 for seconds in clock.slept)
    assert len(set(clock.slept)) > 1, "clients turned away together come back apart"
    assert len({request.headers["Idempotency-Key"] for request in asked}) == 1


def test_without_retry_after_pauses_grow_to_a_limit(clock: Clock) -> None:
    connection, _ = answering(*[AWAY] * 12, DONE)
    assert connection.request("GET", "x") == {"done": True}
    assert clock.slept[0] <= 0.2
    assert clock.slept[-1] >= 5
    assert max(clock.slept) <= 10


@pytest.mark.parametrize("answer", [BUSY, AWAY, httpx2.Response(503)])
@pytest.mark.parametrize("patience", [0, 20, 180])
def test_patience_ends(clock: Clock, answer: Any, patience: float) -> None:
    connection, asked = answering(answer, patience=patience)
    with pytest.raises(Unreachable):
        connection.request("POST", "x")
    assert clock.now <= patience
    assert (len(asked) == 1) == (patience == 0)
    with pytest.raises(Unreachable):  # the same call later carries the same key
        connection.request("POST", "x")
    assert len({request.headers["Idempotency-Key"] for request in asked}) == 1


def test_a_twin_may_have_less_patience_but_not_more(clock: Clock) -> None:
    connection, asked = answering(AWAY, patience=20)
    with pytest.raises(Unreachable):
        connection.hurried(0).request("GET", "x")
    assert len(asked) == 1
    assert connection.hurried(500).patience == 20


def test_fifty_clients_on_one_key_all_finish(tmp_path: Any) -> None:
    # Fewer may run and wait than come, so that most are turned away again and again.
    few = {"CONTEXTLAB_API_AT_ONCE": "4", "CONTEXTLAB_API_WAITING": "20"}
    server = start_server(with_tables(tmp_path), **few)
    token, refused, failed = new_token(tmp_path), list[int](), list[str]()

    def work(number: int) -> None:
        try:
            with ContextLab(server.address, token) as lab:
                lab._http.event_hooks = {"response": [lambda a: refused.append(a.status_code)]}
                session = lab.session(f"client-{number}")
                for step in range(STEPS):
                    session.append({"role": "user", "content": f"Client {number}, step {step}."})
        except Exception as error:  # noqa: BLE001
            failed.append(f"{number}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert refused.count(429) > 0, "no request was turned away: the test shows nothing"
    with ContextLab(server.address, token) as lab:
        for number in range(CLIENTS):
            rows = lab.request("GET", f"sessions/client-{number}/messages")["messages"]
            said = [row["content"][0]["text"] for row in rows]
            assert said == [f"Client {number}, step {step}." for step in range(STEPS)]
    assert server.stop() == 0
