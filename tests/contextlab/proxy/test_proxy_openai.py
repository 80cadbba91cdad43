"""Agents of OpenAI's APIs that only change an address: the real SDK, to a provider of our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from contextlab.client import ContextLab
from contextlab.proxy.forms import form_of
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_reading_back import LAST, LOG, kinds
from tests.contextlab.proxy.test_proxy import NOWHERE, key_of, proxy
from tests.provider_openai import Calls, OpenAIProvider, Refuses, Says, openai_provider

__all__ = ["lab"]

Json = dict[str, Any]
MODEL = "gpt-5.1"
SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}}
SHELL: Any = {"type": "function", "name": "shell", "parameters": SCHEMA, "strict": False}
APIS = ("responses", "chat")
ADDED: Any = {"type": "additional_tools", "role": "developer", "tools": [
    {"type": "namespace", "name": "functions", "description": "", "tools": [SHELL]}]}  # fmt: skip
"""How Codex lists its tools for newer models."""


@pytest.fixture
def gpt() -> Iterator[OpenAIProvider]:
    with openai_provider() as running:
        yield running
    assert not running.refused


@contextmanager
def agent(address: str, **headers: str) -> Iterator[openai.OpenAI]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with openai.OpenAI(
        api_key="none", base_url=f"{address}/openai/v1", max_retries=0, default_headers=named
    ) as client:
        yield client


class Agent:
    """An agent with one tool, which keeps its history as the API's documentation shows."""

    def __init__(self, client: openai.OpenAI, api: str, *, streamed: bool) -> None:
        self.client, self.api, self.streamed = client, api, streamed
        self.history: list[Any] = [{"role": "user", "content": "What does the log say?"}]
        self.events: list[Any] = []

    def ask(self) -> tuple[str, list[tuple[str, str]]]:
        """The text of a reply, and its calls as name and id."""
        return self._chat() if self.api == "chat" else self._responses()

    def _responses(self) -> tuple[str, list[tuple[str, str]]]:
        given: Any = {
            "model": MODEL,
            "instructions": "Be brief.",
            "input": self.history,
            "tools": [SHELL],
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if self.api == "added":
            del given["tools"]
            given["input"] = [ADDED, *self.history]
        if self.streamed:
            with self.client.responses.stream(**given) as stream:
                self.events = list(stream)
                answer: Any = stream.get_final_response()
        else:
            answer = self.client.responses.create(**given)
        self.history += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        return answer.output_text, [(call.name, call.call_id) for call in calls]

    def _chat(self) -> tuple[str, list[tuple[str, str]]]:
        function = {name: SHELL[name] for name in ("name", "parameters")}
        given: Any = {
            "model": MODEL,
            "tools": [{"type": "function", "function": function}],
            "messages": [{"role": "system", "content": "Be brief."}, *self.history],
        }
        if self.streamed:
            with self.client.chat.completions.stream(**given) as stream:
                self.events = list(stream)
                answer: Any = stream.get_final_completion()
        else:
            answer = self.client.chat.completions.create(**given)
        message = answer.choices[0].message
        self.history.append(
            message.model_dump(
                exclude_none=True,
                include={
                    "role": True,
                    "content": True,
                    "tool_calls": {"__all__": {"id", "type", "function"}},
                },
            )
        )
        calls = message.tool_calls or []
        for call in self.history[-1].get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
        return message.content or "", [(call.function.name, call.id) for call in calls]

    def give(self, call: str, output: str) -> None:
        """The output of a tool."""
        if self.api != "chat":
            made = {"type": "function_call_output", "call_id": call, "output": output}
        else:
            made = {"role": "tool", "tool_call_id": call, "content": output}
        self.history.append(made)


def contents(body: Json) -> str:
    return json.dumps(body.get("input") or body["messages"])


def reads(body: Json) -> Any:
    """An answer that reads back what the first stub names."""
    found = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", contents(body))
    assert found, "a stub stands in the context"
    return [*Says("Let me look. "), *Calls("read_back", "r1", ref=found[1], tail=1)]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_an_observed_session_is_recorded_and_its_requests_are_unchanged(
    lab: ContextLab, gpt: OpenAIProvider, api: str, streamed: bool
) -> None:
    name = f"observed-{api}-{streamed}"
    gpt.then(Calls("shell", "c1", cmd="ls"), Calls("shell", "c2", cmd="cat a"), Says("Done."))
    with (
        proxy(lab.url, gpt) as url,
        agent(f"{url}/{key_of(lab)}", x_contextlab_session=name) as client,
    ):
        it = Agent(client, api, streamed=streamed)
        for output in ("a.py", LOG):
            _, [(tool, call)] = it.ask()
            assert tool == "shell"
            it.give(call, output)
        assert it.ask() == ("Done.", [])
    assert LOG.splitlines()[7] in contents(gpt.bodies[-1]), "sent as it is"
    assert not lab.request("GET", f"sessions/{name}/revisions")["revisions"], "and no rewind"
    session = lab.request("GET", f"sessions/{name}")
    assert (session["policy"], session["steps"]) == ("passthrough@1", 3)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", [*APIS, "added"])
def test_a_managed_session_reads_back_without_the_agent(
    lab: ContextLab, gpt: OpenAIProvider, api: str, streamed: bool
) -> None:
    name, step = f"managed-{api}-{streamed}", 0

    def answer(body: Json) -> Any:
        nonlocal step
        step += 1
        if step == 1:
            return Calls("shell", "c1", cmd="make test")
        return reads(body) if step == 2 else Says("That is all.")

    gpt.answer = answer
    with (
        proxy(lab.url, gpt) as url,
        agent(f"{url}/{key_of(lab)}/manage", x_contextlab_session=name) as client,
    ):
        it = Agent(client, api, streamed=streamed)
        _, [(_, call)] = it.ask()
        it.give(call, LOG)
        text, calls = it.ask()
        assert (text.endswith("That is all."), calls) == (True, [])
        it.history.append({"role": "user", "content": "Thanks."})
        it.ask()
    assert LAST in contents(gpt.bodies[2]), "what it read back"
    assert "read_back" in contents(gpt.bodies[3]), "the model knows what it read back"
    assert "read_back" not in json.dumps([str(one) for one in it.history])
    if api == "added":
        ours = [body["input"][0]["tools"][1:] for body in gpt.bodies]
        assert [[tool["name"] for tool in tools] for tools in ours] == [[], *[["read_back"]] * 3]
        assert not any("tools" in body for body in gpt.bodies)
    assert [one["reason"] for one in lab.request("GET", f"sessions/{name}/revisions")["revisions"]]
    flat = [kind for message in kinds(lab, name) for kind in message]
    assert flat.count("read_back") == 1


@pytest.mark.parametrize("api", APIS)
def test_a_call_goes_on_as_it_came_if_we_or_the_provider_fail(lab: ContextLab, api: str) -> None:
    with openai_provider() as gpt:
        gpt.then(Says("ok"), Refuses(400), Says("ok"), Refuses(429))
        for server in (NOWHERE, lab.url):
            with (
                proxy(server, gpt) as url,
                agent(f"{url}/{key_of(lab)}/manage", x_contextlab_session=f"fails-{api}") as client,
            ):
                assert Agent(client, api, streamed=False).ask() == ("ok", [])
        with (
            proxy(lab.url, gpt) as url,
            agent(f"{url}/{key_of(lab)}/manage", x_contextlab_session=f"limit-{api}") as client,
            pytest.raises(openai.RateLimitError) as caught,
        ):
            Agent(client, api, streamed=True).ask()
        assert caught.value.response.headers["retry-after"] == "7"
    sent = [len(body.get("input") or body["messages"]) for body in gpt.bodies]
    assert sent[0] == sent[2]


def test_messages_between_agents_are_stored_and_managed(
    lab: ContextLab, gpt: OpenAIProvider
) -> None:
    secret = {"type": "encrypted_content", "encrypted_content": "gAAAA"}
    parts = [{"type": "input_text", "text": "Payload:"}, secret]
    names = {"author": "/root", "recipient": "/root/count"}
    given: Any = {"type": "agent_message", **names, "content": parts}
    with (
        proxy(lab.url, gpt) as url,
        agent(f"{url}/{key_of(lab)}/manage", x_contextlab_session="count") as client,
    ):
        raw = client.responses.with_raw_response.create(
            model=MODEL, input=[{"role": "user", "content": "# AGENTS.md"}, given, {**given}]
        )
    assert raw.headers["x-contextlab"] == "managed"
    assert gpt.bodies[0]["input"][1:] == [given, given]
    assert lab.request("GET", "sessions/count")["title"] == "count", "the name of its task"
    assert json.dumps(lab.request("GET", "sessions/count/messages")).count("gAAAA") == 2


def test_credentials_reach_only_whom_they_are_for(lab: ContextLab, gpt: OpenAIProvider) -> None:
    tool: Any = {"type": "mcp", "server_label": "crm", "server_url": "https://crm.example/mcp",
                 "authorization": "crm-secret", "headers": {"X-Tenant": "crm-tenant"}}  # fmt: skip
    key = key_of(lab)
    with (
        proxy(lab.url, gpt) as url,
        agent(
            f"{url}/{key}/manage", cookie="contextlab_session=s", x_contextlab_session="mcp"
        ) as c,
    ):
        raw = c.responses.with_raw_response.create(
            model=MODEL, input="One", tools=[tool], extra_headers={"X-Trace": f"of {key}"}
        )
    assert "credentials" in raw.headers["x-contextlab"]
    assert gpt.bodies[0]["tools"] == [tool]
    headers = gpt.headers[0]
    assert headers["authorization"] == "Bearer none"
    assert not {"cookie", "x-trace", "x-contextlab-session"} & headers.keys()
    stored = json.dumps(lab.request("GET", "sessions/mcp/messages"))
    assert "crm.example" in stored
    assert "crm-secret" not in stored and "crm-tenant" not in stored and "none" not in stored


def test_a_history_kept_by_the_provider_is_recorded_and_not_managed(
    lab: ContextLab, gpt: OpenAIProvider
) -> None:
    with proxy(lab.url, gpt) as url, agent(f"{url}/{key_of(lab)}/manage") as client:
        first = client.responses.create(model=MODEL, input="One")
        raw = client.responses.with_raw_response.create(
            model=MODEL, input="Two", previous_response_id=first.id
        )
    assert "previous_response_id" in raw.headers["x-contextlab"]
    assert gpt.bodies[1]["input"] == [{"role": "user", "content": "Two"}]


def test_settings_among_the_items_come_before_a_managed_history():
    known = form_of("openai", "v1/responses", "")
    assert known is not None
    low, high = (
        {"type": "configuration_update", "reasoning": {"effort": effort}}
        for effort in ("low", "high")
    )
    said = [{"role": "user", "content": text} for text in ("a", "b")]
    request = {"model": MODEL, "input": [low, said[0], high, said[1]], "instructions": ""}
    form = known[0]
    assert form.unmanaged(request) == ""
    assert len(form.asked(request)["messages"]) == 2
    assert form.sent(request, {"messages": said})["input"] == [low, high, *said]
    assert "not known" in form.unmanaged({**request, "input": [{"type": "new"}, *said]})
