"""Histories that grow, go back and change: the proxy sends only what is new."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from contextlab.client import ContextLab
from contextlab.client.connection import Refused
from contextlab.client.sessions import Session
from tests.conftest import Server, start_server, wait_until
from tests.contextlab.client.test_client import ASK, lab, model
from tests.contextlab.proxy.test_proxy import agent, key_of, proxy
from tests.provider import Provider

__all__ = ["lab", "model"]

Json = dict[str, Any]
MODES = pytest.mark.parametrize("mode", ["observe", "manage"])


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """It is killed here."""
    return own_server


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each request to our server has, without those of replies alone."""
    found: list[int] = []

    def noted(into: Callable[..., Any], self: Session, given: Any, **more: Any) -> Any:
        if isinstance(given, list):
            found.append(len(given))
        return into(self, given, **more)

    append, step = Session.append, Session.shared_step
    monkeypatch.setattr(Session, "append", lambda *given, **m: noted(append, *given, **m))
    monkeypatch.setattr(Session, "shared_step", lambda *given, **m: noted(step, *given, **m))
    return found


def texts(messages: list[Json]) -> list[str]:
    contents = [one["content"] for one in messages]
    blocks = [[{"text": one}] if isinstance(one, str) else one for one in contents]
    return [block["text"] for content in blocks for block in content]


class Talk:
    """An agent's history through a proxy; each call is checked against what is stored."""

    def __init__(self, lab: ContextLab, url: str, mode: str, name: str, model: Provider) -> None:
        self.lab, self.name, self.model, self.mode = lab, name, model, mode
        self.address = f"{url}/{key_of(lab)}/{mode}/anthropic"
        self.said: list[Any] = []

    def says(self, text: str) -> None:
        """Ask, and wait until the answer is stored."""
        self.said.append({"role": "user", "content": text})
        with agent(self.address, x_contextlab_session=self.name) as client:
            reply = client.messages.create(messages=self.said, **ASK)
        assert texts(self.model.bodies[-1]["messages"]) == texts(self.said)
        self.said.append({"role": "assistant", "content": reply.content[0].text})
        # A managed call waits by itself until the last reply is stored.
        wait_until(lambda: self.mode == "manage" or self.stored == texts(self.said), 60)

    @property
    def stored(self) -> list[str]:
        """The texts of the messages that no change took back; none before there is a session."""
        try:
            found = self.lab.request("GET", f"sessions/{self.name}/context")
        except Refused:
            return []
        return texts(found["messages"])


@MODES
def test_an_agent_goes_on_goes_back_edits_and_compacts(
    lab: ContextLab, model: Provider, sent: list[int], mode: str
) -> None:
    answer = 1 if mode == "observe" else 0  # stored with what it answers, or by itself
    with proxy(lab.url, model) as url:
        talk = Talk(lab, url, mode, f"changing-{mode}", model)
        for text in ("one", "two", "three"):
            talk.says(text)
        assert sent == [1 + answer] * 3
        talk.said = talk.said[:2]
        talk.says("instead of two")
        talk.said[0] = {"role": "user", "content": "one, edited"}
        talk.says("after an edit")
        talk.said = []
        talk.says("A summary. Go on.")
        talk.says("and on")
    assert sent[3:] == [3 + answer, 5 + answer, 1 + answer, 1 + answer]


@MODES
def test_a_proxy_that_restarts_sends_all_once(
    lab: ContextLab, model: Provider, sent: list[int], mode: str
) -> None:
    answer = 1 if mode == "observe" else 0
    with proxy(lab.url, model) as url:
        talk = Talk(lab, url, mode, f"restarted-{mode}", model)
        talk.says("one")
    with proxy(lab.url, model) as url:
        talk.address = f"{url}/{key_of(lab)}/{mode}/anthropic"
        talk.says("two")
        talk.says("three")
    assert sent == [1 + answer, 3 + answer, 1 + answer]


@MODES
def test_two_clients_of_one_session_do_not_mix(lab: ContextLab, model: Provider, mode: str) -> None:
    with proxy(lab.url, model) as here, proxy(lab.url, model) as there:
        for number, urls in enumerate(((here, here), (here, there))):
            name = f"shared-{mode}-{number}"
            one, two = (Talk(lab, url, mode, name, model) for url in urls)
            for round in ("1", "2", "3"):
                one.says(f"one {round}")
                two.says(f"two {round}")


@MODES
def test_what_another_client_took_back_is_sent_again(
    lab: ContextLab, model: Provider, mode: str
) -> None:
    name = f"taken-back-{mode}"
    with proxy(lab.url, model) as url:
        talk = Talk(lab, url, mode, name, model)
        talk.says("one")
        talk.says("two")
        wait_until(lambda: talk.stored == texts(talk.said), 60)
        other = lab.session(name).append(talk.said[:2], history=True)
        assert (other.appended, talk.stored) == (0, texts(talk.said[:2]))
        talk.says("three")
        wait_until(lambda: talk.stored == texts(talk.said), 60)


def test_a_managed_session_can_be_only_recorded_for_a_while(
    lab: ContextLab, model: Provider
) -> None:
    key, of = key_of(lab), partial(lab.request, "GET", "sessions/now-and-then")
    with proxy(lab.url, model) as url:
        talk = Talk(lab, url, "manage", "now-and-then", model)
        for mode in ("manage", "observe", "observe", "manage"):
            talk.mode, talk.address = mode, f"{url}/{key}/{mode}/anthropic"
            talk.says(f"in mode {mode}")
            if mode == "manage":
                before = of()["policy"]
        assert of()["policy"] == before != "passthrough@1"


def test_a_server_that_restarts_gets_only_what_is_new(
    lab: ContextLab, model: Provider, sent: list[int], served: Server
) -> None:
    with proxy(lab.url, model) as url:
        talks = [Talk(lab, url, mode, f"kept-{mode}", model) for mode in ("observe", "manage")]
        for talk in talks:
            talk.says("one")
        kept = partial(lab.request, "GET", "sessions/kept-manage/messages")
        wait_until(lambda: len(kept()["messages"]) == 2, 60)
        served.kill()
        again = start_server(served.data_dir, PORT=str(served.port))
        for talk in talks:
            talk.says("two")
    assert sent == [2, 1, 2, 1]
    assert again.stop() == 0
