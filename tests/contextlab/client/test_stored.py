"""What is sent of a history that our server knows in part."""

from __future__ import annotations

from typing import Any

import pytest

from contextlab.client.connection import OverBudget, Refused
from contextlab.client.stored import End, StoredHistory, hash_of

Json = dict[str, Any]


def text(said: str, **more: Any) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": said, **more}]}


class Server:
    """Counts the messages that it gets; `others` are those of other clients, which took
    something back `revision` times."""

    def __init__(self) -> None:
        self.count, self.others, self.revision = 0, 0, 0
        self.got: list[tuple[int, bool, list[str]]] = []
        self.error: Exception | None = None

    def append(
        self,
        messages: list[Json],
        *,
        history: bool,
        after: int | None = None,
        recorded_revision: int | None = None,
        **setup: Any,
    ) -> End:
        if self.error is not None:
            raise self.error
        known = after, recorded_revision
        if after is not None and known != (self.count + self.others, self.revision):
            raise Refused(422, {"errors": [{"pointer": "/after"}]})
        self.got.append((len(messages), history, list(setup)))
        self.count += len(messages)
        return End(self.count + self.others if messages else None, self.revision)


def send(stored: StoredHistory, server: Server, *said: Json, **setup: Any) -> list[Any]:
    server.got = []
    stored.send(said, setup, server.append, lambda end: end)
    return server.got


def test_only_what_is_new_is_sent() -> None:
    stored, server = StoredHistory(), Server()
    assert send(stored, server, text("a"), tools=[1]) == [(1, True, ["tools"])]
    grown = text("a", cache_control={}), text("b", citations=None)
    assert send(stored, server, *grown, tools=[1]) == [(1, False, [])]
    assert send(stored, server, *grown, text("c"), tools=[2]) == [(1, False, ["tools"])]
    assert send(stored, server, *grown, text("d"), tools=[2]) == [(3, True, ["tools"])]
    assert send(stored, server, *grown, tools=[2]) == [(2, True, ["tools"])], "it went back"


def test_all_is_sent_where_others_wrote_or_a_send_failed() -> None:
    stored, server = StoredHistory(), Server()
    send(stored, server, text("a"))
    server.others = 3
    assert send(stored, server, text("a"), text("b")) == [(2, True, [])]
    server.revision = 1
    assert send(stored, server, text("a"), text("b"), text("b2")) == [(3, True, [])]
    for error in (OverBudget(402, {}), Refused(422, {}), RuntimeError()):
        server.error = error
        with pytest.raises(type(error)):
            send(stored, server, text("a"), text("b"), text("c"))
        server.error = None
        assert send(stored, server, text("a"), text("b"), text("c")) == [(3, True, [])]


def test_a_message_that_follows_counts_unless_others_wrote() -> None:
    stored, server = StoredHistory(), Server()
    send(stored, server, text("a"))
    stored.append(text("b"), lambda: server.append([text("b")], history=False))
    assert send(stored, server, text("a"), text("b"), text("c")) == [(1, False, [])]
    server.others = 1
    stored.append(text("d"), lambda: server.append([text("d")], history=False))
    said = text("a"), text("b"), text("c"), text("d"), text("e")
    assert send(stored, server, *said) == [(5, True, [])]
    server.revision = 1
    stored.append(text("f"), lambda: server.append([text("f")], history=False))
    assert send(stored, server, *said, text("f"), text("g")) == [(7, True, [])]


@pytest.mark.parametrize(
    "same",
    [
        {"role": "user", "content": "a\ud800"},
        {"content": [{"text": "a\ud800", "type": "text"}], "role": "user"},
        text("a\ud800", cache_control={"type": "ephemeral"}),
        text("a\ud800", citations=None),
    ],
)
def test_a_message_is_the_same_however_it_is_sent(same: Json) -> None:
    assert hash_of(same) == hash_of(text("a\ud800")) != hash_of(text("a"))
