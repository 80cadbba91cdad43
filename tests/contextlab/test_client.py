"""The client that agents use, against a served product and a provider of our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, Refused, Unreachable, wrap
from tests.conftest import ROOT, Server, free_port
from tests.provider import Answer, Provider, Text, provider

TOOL = {"name": "Read", "input_schema": {"type": "object"}, "description": "Read a file."}


@pytest.fixture(scope="module")
def lab(served: Server) -> Iterator[ContextLab]:
    env = {**os.environ, "CONTEXTLAB_DATA_DIR": str(served.data_dir), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "contextlab.cli", "token", "create", "--team", "local"]
    made = subprocess.run([*command, "--json"], env=env, capture_output=True, check=True)
    with ContextLab(served.address, json.loads(made.stdout)["token"]) as server:
        yield server


@pytest.fixture
def model() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def claude(model: Provider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="none", base_url=model.url, max_retries=0) as client:
        yield client


def test_the_loop_of_the_readme(lab: ContextLab, model: Provider, claude: anthropic.Anthropic):
    session = lab.session("loop", agent="fixer", model="claude-sonnet-5")
    session.append({"role": "user", "content": "Fix the failing test."})
    context = session.context()
    reply = claude.messages.create(max_tokens=100, **context.request)
    stored = session.answer(reply, context)
    assert not model.refused
    assert (context.step, stored.appended) == (1, 1)
    assert lab.request("GET", f"sessions/{session.id}")["steps"] == 1
    last = lab.request("GET", f"sessions/{session.id}/messages")["messages"][-1]
    assert (last["role"], last["call"]) == ("assistant", reply.id)


def test_pins_reading_back_and_the_end(lab: ContextLab):
    session = lab.session("pinned", model="claude-sonnet-5")
    stored = session.append([{"role": "user", "content": "port 8417\nhost kelp"}])
    session.pin(stored.raw["last_seq"])
    assert session.read_back("m1.0", lines="2-2") == "host kelp"
    session.finish("succeeded")
    assert lab.request("GET", f"sessions/{session.id}")["outcome"] == "succeeded"


def answers(body: dict[str, Any]) -> Answer:
    """Reads a file first, then says that it is done."""
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and any(block["type"] == "tool_result" for block in last):
        return Text("Done.")
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}}
    return Answer((use,), "tool_use")


def test_a_wrapped_client_sends_the_managed_context_and_stores_what_came(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
):
    model.answer = answers
    client = wrap(claude, session="wrapped", server=lab)
    history: list[dict[str, Any]] = [{"role": "user", "content": "What is in a.py?"}]
    ask = {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [TOOL], "system": "Be brief."}
    first = client.messages.create(messages=history, **ask)
    history.append({"role": "assistant", "content": first.content})
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"}
    history.append({"role": "user", "content": [result]})
    second = client.messages.create(messages=history, **ask)
    assert second.content[0].text == "Done."
    assert not model.refused
    assert [len(body["messages"]) for body in model.bodies] == [1, 3]
    assert model.bodies[0]["system"]
    found = lab.request("GET", f"sessions/{lab.session('wrapped').id}/messages")
    roles = [message["role"] for message in found["messages"]]
    assert roles == ["system", "system", "user", "assistant", "user", "assistant"]
    assert lab.request("GET", "sessions/wrapped")["steps"] == 2


def test_an_agent_goes_on_where_no_server_answers(claude: anthropic.Anthropic, monkeypatch, caplog):
    monkeypatch.setattr("contextlab.client.connection.ATTEMPTS", 1)
    with ContextLab(f"http://127.0.0.1:{free_port()}", "clk_none") as nobody:
        said = [{"role": "user", "content": "Hi."}]
        client = wrap(claude, session="x", server=nobody)
        reply = client.messages.create(model="m", max_tokens=5, messages=said)
        assert reply.content[0].text == "ok"
        assert "goes out as it is" in caplog.text
        with pytest.raises(Unreachable):
            nobody.session("x")


def test_a_refusal_names_the_field(lab: ContextLab):
    with pytest.raises(Refused) as refused:
        lab.session("wrong").append([{"role": "wizard", "content": "Hi."}])
    assert refused.value.status == 422
    assert "/messages/0/role" in str(refused.value)
    with ContextLab(lab.url, "clk_nobody") as stranger, pytest.raises(Refused) as refused:
        stranger.session("x")
    assert refused.value.status == 401


def test_a_client_without_a_key_says_how_to_get_one(monkeypatch):
    monkeypatch.delenv("CONTEXTLAB_TOKEN", raising=False)
    with pytest.raises(ValueError, match="contextlab token create"):
        ContextLab()
