"""Wrapped clients while our server is away, a session is paused, or a budget is used."""

from __future__ import annotations

import json

from contextlab.client import ContextLab
from tests.conftest import Server, free_port
from tests.contextlab.client.test_client_budgets import limit
from tests.contextlab.client.test_misaddressed import listening, without_tls
from tests.contextlab.client.test_paused import act
from tests.contextlab.client.typescript.programs import Programs, lab, model, node
from tests.provider import Provider

__all__ = ["lab", "listening", "model", "node", "without_tls"]


def test_the_call_goes_out_unchanged_when_our_server_does_not_answer(
    model: Provider, node: Programs
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    env = {"PROVIDER": model.url, "CONTEXTLAB_URL": nowhere, "CALLED": "x", "PATIENCE": "0"}
    name, said = node.run("claude", "once", **env)
    assert (name, '"text":"ok"' in said) == ("none", True)
    assert "the context is sent as it is" in node.warned
    assert [one["content"] for one in model.bodies[0]["messages"]] == ["Hi."]
    assert [tool["name"] for tool in model.bodies[0]["tools"]] == ["Bash"]


def test_a_wrapped_client_waits_until_the_session_is_resumed(
    served: Server, lab: ContextLab, model: Provider, node: Programs
) -> None:
    lab.session("ts held", model="claude-sonnet-5")
    assert act(served, "ts%20held", "pause", "look at the plan").status_code == 200
    name, said, seconds = node.run("session", "forbidden", CALLED="ts held")[0]
    assert (name, "look at the plan" in said) == ("Paused", True)
    assert 5 <= seconds <= 7.5
    program = node.begin("claude", "once", PROVIDER=model.url, CALLED="ts held")
    assert program.stdout is not None
    assert program.stdout.readline() == '"waits"\n'
    assert not model.bodies, "no call goes out while it is paused"
    assert act(served, "ts%20held", "resume", "the plan is good").status_code == 200
    said, warned = program.communicate()
    assert json.loads(said.splitlines()[-1])[0] == "none", warned
    assert len(model.bodies) == 1


def test_a_budget_refuses_the_call_before_the_model_is_asked(
    served: Server, lab: ContextLab, model: Provider, node: Programs
) -> None:
    lab.session("ts broke", model="claude-sonnet-5")
    limit(served, "ts broke", 5_000, "hard")
    assert node.run("session", "spends", CALLED="ts broke") == [True, 402, False, 1, 0]
    limit(served, "ts broke", 0, "hard")
    name, said = node.run("claude", "once", PROVIDER=model.url, CALLED="ts broke")
    assert (name, said[:4], model.bodies) == ("OverBudget", "402:", [])


def test_a_server_that_is_addressed_wrongly_is_named_at_once(
    listening: tuple[int, list[int]], without_tls: str, node: Programs
) -> None:
    port, knocks = listening
    url = f"https://127.0.0.1:{port}"
    name, said, asked = node.run("session", "misaddressed", CONTEXTLAB_URL=url)
    assert (name, asked, len(knocks)) == ("Misaddressed", 1, 1)
    assert said.startswith(f"The certificate of {url} is not trusted: self-signed certificate.")
    name, said, asked = node.run("session", "misaddressed", CONTEXTLAB_URL=without_tls)
    assert (name, asked) == ("Misaddressed", 1)
    assert f"{without_tls} does not speak TLS" in said
    name, said, asked = node.run(
        "session", "misaddressed", CONTEXTLAB_URL="http://lab.invalid", UNKNOWN="1"
    )
    assert (name, asked) == ("Misaddressed", 2)
    assert "no server of the name in http://lab.invalid" in said
