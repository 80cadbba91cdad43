"""Managed calls that our server missed: stored once it is back, in their order."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from contextlab.client import ContextLab
from tests.conftest import wait_until
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import WITH, history, kinds
from tests.contextlab.proxy.test_proxy import agent, called, key_of, proxy
from tests.provider import Provider, Text

__all__ = ["lab", "model"]


class Line:
    """The line to our server: cut, or with a number of answers that get lost on their way."""

    def __init__(self, url: str) -> None:
        self.url, self.is_cut, self.lost = url, False, 0
        self._request = httpx2.Client.request

    def request(self, client: httpx2.Client, method: str, *given: Any, **named: Any) -> Any:
        ours = str(client.base_url).startswith(self.url)
        if ours and self.is_cut:
            raise httpx2.ConnectError("cut")
        answer = self._request(client, method, *given, **named)
        if ours and self.lost and method == "POST":
            self.lost -= 1
            raise httpx2.ReadError("lost")
        return answer


@pytest.fixture
def line(lab: ContextLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    made = Line(lab.url)
    # Longer than any patience here: one attempt each.
    monkeypatch.setattr("contextlab.client.connection.FIRST_PAUSE", 120)
    monkeypatch.setattr(httpx2.Client, "request", lambda *a, **k: made.request(*a, **k))
    yield made


def said(client: anthropic.Anthropic, talk: list[Any], streamed: bool, text: str) -> None:
    """A call, whose reply and a next question join the agent's history."""
    reply = called(client, streamed, messages=talk, **WITH)
    answer = {"role": "assistant", "content": [one.to_dict() for one in reply.content]}
    talk += [answer, {"role": "user", "content": text}]


@pytest.mark.parametrize(("streamed", "lost"), [(True, 0), (False, 1)])
def test_calls_that_went_past_us_are_stored_once_the_server_is_back(
    lab: ContextLab, model: Provider, line: Line, streamed: bool, lost: int
) -> None:
    name, talk = f"missed-{streamed}", history("short")
    model.then(*map(Text, ("first", "second", "third")))
    with (
        proxy(lab.url, model, patience=20) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic", x_contextlab_session=name) as client,
    ):
        said(client, talk, streamed, "Two.")
        line.is_cut = True
        said(client, talk, streamed, "Three.")
        said(client, talk, streamed, "Four.")
        line.is_cut, line.lost = False, lost
    assert kinds(lab, name)[3:] == [["text"]] * 5
    found = lab.request("GET", f"sessions/{name}")
    assert (found["policy"], found["steps"]) == ("balanced@1", 4)
    assert not lab.request("GET", f"sessions/{name}/revisions")["revisions"]
    exported = lab.download(f"sessions/{name}/export").decode().splitlines()
    calls = [line for line in exported if not line.startswith('{"is": "session"')]
    assert sum("output_tokens" in line for line in calls) == 3, "usage of each call, once"


def test_managing_goes_on_as_soon_as_the_server_is_back(
    lab: ContextLab, model: Provider, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextlab.proxy.recorder.FIRST_PAUSE", 0.05)
    monkeypatch.setattr("contextlab.client.managed.PAUSE", 10_000)
    name, talk = "back-soon", history("short")
    with proxy(lab.url, model, patience=20) as url:
        address = f"{url}/{key_of(lab)}/manage/anthropic"
        with agent(address, x_contextlab_session=name) as client:
            said(client, talk, False, "Two.")
            line.is_cut = True
            said(client, talk, False, "Three.")
            line.is_cut = False

            def is_managed() -> bool:
                raw = client.messages.with_raw_response.create(messages=talk, **WITH)
                return raw.headers["x-contextlab"] == "managed"

            wait_until(is_managed, 30)


@pytest.mark.parametrize("mode", ["manage", "observe"])
def test_calls_wait_on_disk_until_a_later_proxy_stores_them(
    lab: ContextLab,
    model: Provider,
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mode: str,
) -> None:
    monkeypatch.setattr("contextlab.proxy.recorder.FIRST_PAUSE", 0.05)
    monkeypatch.setattr("contextlab.proxy.recorder.LAST_SECONDS", 1)
    name, talk, folder = f"spooled-{mode}", history("short"), tmp_path / "spool"
    line.is_cut = True
    with proxy(lab.url, model, spool=folder) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic"
        with agent(address, x_contextlab_session=name) as client:
            said(client, talk, True, "Two.")
            said(client, talk, False, "Three.")
        wait_until(lambda: len([*folder.iterdir()]) == 2)
    files = [*folder.iterdir()]
    assert {stat.S_IMODE(one.stat().st_mode) for one in (*files, folder)} == {0o600, 0o700}
    assert not any(key_of(lab) in f"{one.name}{one.read_bytes()!r}" for one in files)
    line.is_cut = False
    (folder / f"{files[0].name.partition('-')[0]}-0.call").write_bytes(b"cut short")
    with proxy(lab.url, model, patience=20, spool=folder) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic"
        with agent(address, x_contextlab_session=name) as client:
            said(client, talk, False, "Four.")
    assert not [*folder.iterdir()]
    found = lab.request("GET", f"sessions/{name}")
    assert (found["steps"], found["messages"]) == (4, 9)
    exported = lab.download(f"sessions/{name}/export").decode().splitlines()
    calls = [line for line in exported if not line.startswith('{"is": "session"')]
    assert sum("output_tokens" in line for line in calls) == 3, "usage of each call, once"
