"""Many clients at once: each request is answered, and what is acknowledged is stored once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from tests.conftest import Server
from tests.faults.services import IN_FULL
from tests.faults.store import in_data_dir

CLIENTS, EACH = 20, 100 if IN_FULL else 15
RETRIES = 50
FLOODERS, FLOOD = 50, 20 if IN_FULL else 8


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """It is flooded, and its store audited."""
    return own_server


class Answer(NamedTuple):
    """What a request got."""

    status: int
    body: bytes
    retry_after: str
    replayed: str


class Client:
    """A client with a connection of its own."""

    def __init__(self, server: Server, token: str) -> None:
        self.line = HTTPConnection("127.0.0.1", server.port, timeout=120)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def append(self, session: str, text: str, **more: str) -> Answer:
        """Append one message."""
        headers = self.headers | {name.replace("_", "-"): value for name, value in more.items()}
        body = json.dumps({"messages": [{"role": "user", "content": text}]})
        self.line.request("POST", f"/api/v1/sessions/{session}/messages", body, headers)
        answer = self.line.getresponse()
        said = answer.read()
        given = (answer.headers.get(name, "") for name in ("Retry-After", "Idempotent-Replay"))
        return Answer(answer.status, said, *given)

    def close(self) -> None:
        self.line.close()


@pytest.fixture(scope="module")
def token(served: Server) -> str:
    return served.new_key()


@pytest.fixture
def client(served: Server, token: str) -> Iterator[Callable[[], Client]]:
    """Makes clients."""
    made: list[Client] = []

    def new() -> Client:
        made.append(Client(served, token))
        return made[-1]

    yield new
    for one in made:
        one.close()


def texts(server: Server, session: str) -> list[str]:
    """The messages that the store has of a session, in order."""
    rows = in_data_dir(server.data_dir).rows(
        "SELECT m.seq, b.data FROM agent_sessions_session s"
        " JOIN agent_sessions_message m ON m.session_id = s.id"
        " JOIN agent_sessions_block k ON k.message_id = m.id"
        " JOIN agent_sessions_blob b ON b.sha = k.sha AND b.team_id = s.team_id"
        f" WHERE s.external_id = '{session}' ORDER BY m.seq"
    )
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))
    return [json.loads(bytes(data))["text"] for _, data in rows]


@pytest.mark.fault("B1")
def test_one_append_fifty_times_in_sequence(served: Server, client: Any) -> None:
    one = client()
    answers = [one.append("repeated", "once", Idempotency_Key="k") for _ in range(RETRIES)]
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert [answer.replayed for answer in answers] == [""] + ["true"] * (RETRIES - 1)
    assert texts(served, "repeated") == ["once"]


@pytest.mark.fault("B2")
def test_one_append_fifty_times_at_once(served: Server, client: Any) -> None:
    together = threading.Barrier(RETRIES)

    def send(one: Client) -> Answer:
        together.wait()
        return one.append("together", "once", Idempotency_Key="k2")

    clients = [client() for _ in range(RETRIES)]
    with ThreadPoolExecutor(RETRIES) as threads:
        answers = list(threads.map(send, clients))
    statuses = Counter(answer.status for answer in answers)
    assert set(statuses) <= {201, 409, 429}, statuses
    again = clients[0].append("together", "once", Idempotency_Key="k2")
    assert {answer.body for answer in answers if answer.status == 201} == {again.body}
    assert again.replayed == "true"
    assert texts(served, "together") == ["once"]


@pytest.mark.fault("B6", "D3")
def test_twenty_clients_append_to_one_session(served: Server, client: Any) -> None:
    def send(number: int) -> set[int]:
        one = client()
        return {one.append("shared", f"{number} {step}").status for step in range(EACH)}

    with ThreadPoolExecutor(CLIENTS) as threads:
        assert set().union(*threads.map(send, range(CLIENTS))) == {201}
    stored = [tuple(map(int, text.split())) for text in texts(served, "shared")]
    assert len(stored) == CLIENTS * EACH
    for number in range(CLIENTS):
        assert [step for one, step in stored if one == number] == list(range(EACH))
    in_data_dir(served.data_dir).audit()


@pytest.mark.fault("E12")
def test_a_flood_is_answered_or_asked_to_wait(served: Server, client: Any) -> None:
    acknowledged: list[str] = []
    together = threading.Barrier(FLOODERS)

    def flood(number: int) -> list[Answer]:
        one = client()
        together.wait()
        answers = []
        for step in range(FLOOD):
            answers.append(one.append(f"flood-{number % 10}", f"{number} {step}"))
            if answers[-1].status == 201:
                acknowledged.append(f"{number} {step}")
        return answers

    with ThreadPoolExecutor(FLOODERS) as threads:
        answers = [one for several in threads.map(flood, range(FLOODERS)) for one in several]
    assert {answer.status for answer in answers} <= {201, 429, 503}
    refused = [answer for answer in answers if answer.status != 201]
    assert all(int(answer.retry_after) > 0 for answer in refused)
    stored = [text for number in range(10) for text in texts(served, f"flood-{number}")]
    assert sorted(stored) == sorted(acknowledged)
    assert client().append("after", "calm").status == 201
