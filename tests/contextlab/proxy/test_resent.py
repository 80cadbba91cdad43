"""Agents whose programs complete the calls of a reply when they send it back, as Claude Code does:
a step per request, and nothing that is missing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from contextlab.client import ContextLab
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import WITH, bare, result, use
from tests.contextlab.proxy import test_proxy_openai as openai_agents
from tests.contextlab.proxy.test_proxy import agent, called, key_of, proxy
from tests.contextlab.proxy.test_proxy_openai import APIS, gpt
from tests.provider import Answer, Provider, Text
from tests.provider_openai import Calls, OpenAIProvider, Says

__all__ = ["gpt", "lab", "model"]

Json = dict[str, Any]
EDITS = 3


def completed(block: Json) -> Json:
    """A call with a default, before what the model said and in another order."""
    if block["type"] != "tool_use":
        return block
    given = dict(reversed(block["input"].items()))
    return {**block, "input": {"replace_all": False, **given}}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_a_step_per_request_where_claude_code_completes_its_edits(
    lab: ContextLab, model: Provider, mode: str, restarted: bool
) -> None:
    name, talk = f"completed-{mode}-{restarted}", [{"role": "user", "content": "Edit."}]
    edits = [use(f"t{at}", "Edit", path=f"{at}.py", new="x", old="y") for at in range(EDITS)]
    text = {"type": "text", "text": "I edit."}
    model.then(*(Answer((text, edit), "tool_use") for edit in edits), Text("Done."))
    given = {**WITH, "tools": [WITH["tools"][0] | {"name": "Edit"}]}
    asked = [*range(EDITS + 1)]
    for part in [[one] for one in asked] if restarted else [asked]:
        with proxy(lab.url, model, patience=20) as url:
            address = f"{url}/{key_of(lab)}/{mode}/anthropic"
            with agent(address, x_claude_code_session_id=name, user_agent="claude-cli/2") as client:
                for at in part:
                    reply = called(client, True, messages=talk, **given)
                    content = [completed(one.to_dict()) for one in reply.content]
                    talk.append({"role": "assistant", "content": content})
                    talk.append(result(f"t{at}", {"content": "ok"}))
    assert not model.refused
    check(lab, name, sent=len(talk) - 1)
    if mode == "manage":
        sent = [bare(body["messages"]) for body in model.bodies]
        assert all(then[: len(now)] == now for now, then in pairwise(sent))
        said = [one["content"] for one in model.bodies[-1]["messages"] if one["role"] != "user"]
        assert [content[-1]["input"] for content in said] == [edit["input"] for edit in edits]


@pytest.mark.parametrize("mode", ["observe", "manage"])
@pytest.mark.parametrize("api", APIS)
def test_a_step_per_request_where_an_agent_of_openai_writes_arguments_anew(
    lab: ContextLab, gpt: OpenAIProvider, api: str, mode: str
) -> None:
    name = f"anew-{api}-{mode}"
    gpt.then(*(Calls("shell", f"c{at}", cmd="ls", cwd="/") for at in range(EDITS)), Says("Done."))
    with (
        proxy(lab.url, gpt, patience=20) as url,
        openai_agents.agent(f"{url}/{key_of(lab)}/{mode}", x_contextlab_session=name) as client,
    ):
        it = openai_agents.Agent(client, api, streamed=False)
        for _ in range(EDITS):
            _, [(_, call)] = it.ask()
            anew(it.history[-1])
            it.give(call, "a.py")
        assert it.ask() == ("Done.", [])
    check(lab, name, sent=None)


def anew(last: Any) -> None:
    """Write the arguments of an agent's last call in another order, with a default."""
    function = last["tool_calls"][0]["function"] if isinstance(last, dict) else None
    said = json.loads(function["arguments"] if function else last.arguments)
    sent = json.dumps({"timeout": 5, **dict(reversed(said.items()))}, indent=1)
    if function:
        function["arguments"] = sent
    else:
        last.arguments = sent


def check(lab: ContextLab, name: str, sent: int | None) -> None:
    """One step per request, each with its usage, and no change of the recorded history."""
    session = lab.request("GET", f"sessions/{name}")
    assert session["steps"] == EDITS + 1
    assert sent is None or session["messages"] == sent + 1
    revisions = lab.request("GET", f"sessions/{name}/revisions?run=recorded")["revisions"]
    assert [one["trigger"] for one in revisions] == []
    # A step without usage would make the session's cost a lower bound.
    exported = lab.download(f"sessions/{name}/export").decode().splitlines()
    calls = [line for line in exported if not line.startswith('{"is": "session"')]
    assert (
        sum("output_tokens" in line or "completion_tokens" in line for line in calls) == EDITS + 1
    )
