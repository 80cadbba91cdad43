"""Agents of Gemini's API that only change an address: plain HTTP, as its SDKs send it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from contextlab.client import ContextLab
from contextlab.proxy.gemini import of_the_path
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_reading_back import LAST, LOG, kinds
from tests.contextlab.proxy.test_proxy import key_of, proxy
from tests.provider_gemini import Calls, GeminiProvider, Says, gemini_provider

__all__ = ["lab"]

Json = dict[str, Any]
MODEL = "gemini-3.1-pro-preview"
SCHEMA = {"type": "OBJECT", "properties": {"cmd": {"type": "STRING"}}}
STEPS = 12
"""After which the policy has offloaded the first results."""
SHELL = {"functionDeclarations": [{"name": "shell", "parameters": SCHEMA}]}


@pytest.fixture
def model() -> Iterator[GeminiProvider]:
    with gemini_provider() as running:
        yield running
    assert not running.refused


class Agent:
    """An agent with one tool, which sends its history back as it came."""

    def __init__(self, address: str, session: str, *, streamed: bool) -> None:
        method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
        self.address = f"{address}/gemini/v1beta/models/{MODEL}:{method}"
        self.session, self.streamed = session, streamed
        self.contents = [{"role": "user", "parts": [{"text": "What does the log say?"}]}]
        self.mark = ""

    def ask(self) -> list[Json]:
        """The parts of the answer."""
        system = {"parts": [{"text": "Be brief."}]}
        body = {"contents": self.contents, "tools": [SHELL], "systemInstruction": system}
        headers = {"x-goog-api-key": "none", "x-contextlab-session": self.session}
        answer = httpx2.post(self.address, json=body, headers=headers, timeout=60)
        answer.raise_for_status()
        self.mark = answer.headers["x-contextlab"]
        whole = [answer.json()] if not self.streamed else [
            json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")
        ]  # fmt: skip
        assert whole[-1]["candidates"][0]["finishReason"] == "STOP"
        parts = [part for one in whole for part in one["candidates"][0]["content"]["parts"]]
        self.sent = [*self.contents]
        if self.streamed:  # as google-genai does
            self.contents += [{"role": "model", "parts": [part]} for part in parts]
        else:
            self.contents.append({"role": "model", "parts": parts})
        return [part for part in parts if part.get("text") != ""]

    def give(self, output: str) -> None:
        """The output of the tool."""
        response = {"name": "shell", "response": {"output": output}}
        self.contents.append({"role": "user", "parts": [{"functionResponse": response}]})


@pytest.mark.parametrize("streamed", [False, True])
def test_an_observed_session_is_recorded_and_its_requests_are_unchanged(
    lab: ContextLab, model: GeminiProvider, streamed: bool
) -> None:
    name = f"gemini-observed-{streamed}"
    model.then(Calls("shell", cmd="cat log"), Says("Kelp."))
    with proxy(lab.url, model) as url:
        it = Agent(f"{url}/{key_of(lab)}", name, streamed=streamed)
        it.ask()
        it.give("kelp")
        assert it.ask() == [{"text": "Kelp."}]
    assert it.mark == "recording"
    assert model.bodies[1]["contents"] == it.sent
    assert kinds(lab, name) == [["text"], ["shell"], ["tool_result"], ["text"]]
    session = lab.request("GET", f"sessions/{name}")
    assert (session["model"], session["steps"]) == (MODEL, 2)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_managed_session_reads_back_without_the_agent(
    lab: ContextLab, model: GeminiProvider, streamed: bool
) -> None:
    name = f"gemini-managed-{streamed}"

    def reads() -> list[Json]:
        found = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", json.dumps(model.bodies[-1]))
        assert found, "a stub stands in the context"
        return [*Says("Let me look. "), *Calls("read_back", ref=found[1], tail=1)]

    model.then(
        *(Calls("shell", cmd=f"cat {n}") for n in range(STEPS)), reads, Says("It ends in kelp.")
    )
    lab.session(name, model=MODEL, policy="offload-first")
    with proxy(lab.url, model, patience=20) as url:
        it = Agent(f"{url}/{key_of(lab)}/manage", name, streamed=streamed)
        for number in range(STEPS):
            [call] = it.ask()
            assert call["functionCall"]["name"] == "shell"
            it.give(LOG[-9_000:].replace("kelp", f"kelp {number}"))
        assert it.ask() == [{"text": "Let me look. "}, {"text": "It ends in kelp."}]
        assert it.mark == "managed"
        it.contents.append({"parts": [{"text": ""}]})  # the end of a stream, without a role
        it.contents.append({"role": "user", "parts": [{"text": "Thanks."}]})
        it.ask()
    [own] = SHELL["functionDeclarations"]
    assert model.bodies[0]["tools"][0]["functionDeclarations"] == [own]
    [response] = model.bodies[STEPS + 1]["contents"][-1]["parts"]
    assert LAST.replace("kelp", "kelp 0") in str(response["functionResponse"]["response"])
    assert "read_back" in json.dumps(model.bodies[STEPS + 2]["contents"]), (
        "the model knows what it read"
    )
    assert "read_back" not in json.dumps(it.contents)
    assert model.bodies[STEPS + 2]["contents"][1]["parts"][0]["thoughtSignature"]
    stored = lab.request("GET", f"sessions/{name}/messages", query={"limit": 500})["messages"]
    asked = [one["content"] for one in stored if one["role"] == "user"]
    texts = [one for content in asked for one in content if one["type"] == "text"]
    assert [one["text"] for one in texts] == ["What does the log say?", "Thanks."]
    flat = [kind for message in kinds(lab, name) for kind in message]
    assert flat.count("read_back") == 1


@pytest.mark.parametrize(
    ("path", "query", "found"),
    [
        ("v1beta/models/gemini-3:generateContent", "", {"model": "gemini-3", "stream": False}),
        ("v1/models/g:streamGenerateContent", "alt=sse&key=k", {"model": "g", "stream": True}),
        ("v1beta/models/g:streamGenerateContent", "", None),
        ("v1beta/models/g:countTokens", "", None),
        ("v1beta/models", "", None),
    ],
)
def test_which_requests_are_model_calls(path: str, query: str, found: Json | None) -> None:
    assert of_the_path(path, query) == found
