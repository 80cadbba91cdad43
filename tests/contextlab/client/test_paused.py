"""A person pauses an agent: its next model call waits until a person resumes it."""

from __future__ import annotations

import anthropic
import httpx2
import pytest

from contextlab.client import ContextLab, Paused, managed, wrap
from tests.conftest import Server
from tests.contextlab.client.test_client import claude, lab, model
from tests.provider import Provider

__all__ = ["claude", "lab", "model"]

ASK = {
    "model": "claude-sonnet-5",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Go."}],
}


def act(served: Server, session: str, act: str, reason: str) -> httpx2.Response:
    """Pause or resume, as a person does in the browser."""
    return served.ask("POST", f"/api/v1/sessions/{session}/{act}", json={"reason": reason})


def test_a_wrapped_client_waits_until_the_session_is_resumed(
    served: Server,
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    monkeypatch: pytest.MonkeyPatch,
):
    lab.session("held", model="claude-sonnet-5")
    assert act(served, "held", "pause", "look at the plan").status_code == 200
    waits: list[float] = []

    def resumes(seconds: float) -> None:
        assert not model.bodies, "no call goes out while it is paused"
        waits.append(seconds)
        if len(waits) == 2:
            assert act(served, "held", "resume", "the plan is good").status_code == 200

    monkeypatch.setattr(managed, "sleep", resumes)
    client = wrap(claude, session="held", server=lab)
    client.messages.create(**ASK)
    assert len(waits) == 2 and all(5 <= seconds <= 7.5 for seconds in waits)
    assert len(model.bodies) == 1


def test_after_an_hour_a_wrapped_client_raises(
    served: Server,
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    monkeypatch: pytest.MonkeyPatch,
):
    lab.session("left", model="claude-sonnet-5")
    act(served, "left", "pause", "look at the plan")
    monkeypatch.setattr(managed, "PAUSED_AT_MOST", 0)
    with pytest.raises(Paused, match="look at the plan"):
        wrap(claude, session="left", server=lab).messages.create(**ASK)
    assert not model.bodies


def test_a_client_of_its_own_is_refused_and_says_by_whom(served: Server, lab: ContextLab):
    session = lab.session("alone", model="claude-sonnet-5")
    session.append({"role": "user", "content": "Go."})
    act(served, "alone", "pause", "wrong branch")
    for asks in (session.context, lambda: session.reserve("c1", 10)):
        with pytest.raises(Paused, match="paused this session: “wrong branch”") as error:
            asks()
        assert error.value.retry_after >= 5
    appended = session.append({"role": "user", "content": "More."})
    assert appended.raw["advice"]["level"] == "paused", "what it sends is still stored"
    with pytest.raises(Paused):
        session.step({"role": "user", "content": "And more."})
    assert lab.request("GET", "sessions/alone")["messages"] == 3
    assert lab.request("GET", "sessions/alone")["paused"]["reason"] == "wrong branch"
    act(served, "alone", "resume", "fixed")
    assert session.context().id and session.reserve("c1", 10)["can_proceed"]
    assert act(served, "alone", "resume", "again").status_code == 409
