"""Agents that send replies back without their reasoning, and a proxy that is restarted meanwhile:
nothing is stored twice, and what is downloaded does not grow with the history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contextlab.client import ContextLab
from contextlab.client.connection import Connection
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_reading_back import LAST, LOG
from tests.contextlab.proxy import test_proxy_gemini as gemini
from tests.contextlab.proxy import test_proxy_openai as openai
from tests.contextlab.proxy.test_proxy import key_of, proxy
from tests.provider_gemini import Calls as GeminiCalls
from tests.provider_gemini import gemini_provider
from tests.provider_openai import Calls, OpenAIProvider, Says, openai_provider

__all__ = ["lab"]

Json = dict[str, Any]
APIS = pytest.mark.parametrize("api", ["chat", "responses", "gemini"])
SHORT, LONG = 4, 24
"""Steps before the restart."""
AFTER = 3


@pytest.fixture
def downloaded(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The messages of each download from our server."""
    found: list[list[Any]] = []
    request = Connection.request

    def noted(self: Connection, method: str, address: str, *given: Any, **more: Any) -> Json:
        answer = request(self, method, address, *given, **more)
        if method == "GET" and address.endswith("/messages"):
            found.append(answer["messages"])
        return answer

    monkeypatch.setattr(Connection, "request", noted)
    return found


class OpenAIAgent:
    """An agent of an API of OpenAI that keeps no reasoning, and the model that it asks."""

    def __init__(self, api: str, mode: str) -> None:
        self.api, self.mode, self.history = api, mode, list[Any]()
        self.gpt = OpenAIProvider()

    @contextmanager
    def provider(self) -> Iterator[OpenAIProvider]:
        with openai_provider() as self.gpt:
            self.gpt.answer = self.answer
            yield self.gpt

    def answer(self, body: Json) -> Any:
        step = len(self.gpt.bodies)
        if step == 2 and self.mode == "manage":
            return openai.reads(body)
        made: Any = Calls("shell", f"c{step}", cmd=f"make {step}")
        summary = [{"type": "summary_text", "text": f"I think about {step}."}]
        said: Any = Says(f" Step {step}.\n")
        return [{**made[0], "summary": summary}, *said, made[1]]

    def steps(self, address: str, name: str, outputs: list[str]) -> None:
        with openai.agent(f"{address}/{self.mode}", x_contextlab_session=name) as client:
            it = openai.Agent(client, self.api, streamed=True)
            it.history = self.history or it.history
            for output in outputs:
                _, [(_, call)] = it.ask()
                it.history = [one for one in it.history if not is_reasoning(one)]
                it.give(call, output)
            self.history = it.history


def is_reasoning(item: Any) -> bool:
    return getattr(item, "type", "") == "reasoning"


class GeminiAgent:
    """An agent of Gemini's API that keeps no thoughts, and no signatures that it need not send,
    and its model."""

    def __init__(self, mode: str) -> None:
        self.mode, self.contents = mode, list[Json]()

    @contextmanager
    def provider(self) -> Iterator[Any]:
        with gemini_provider() as it:

            def reads() -> list[Json]:
                found = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", json.dumps(it.bodies[-1]))
                assert found, "a stub stands in the context"
                return [{"text": "Let me look. "}, *GeminiCalls("read_back", ref=found[1], tail=1)]

            says = [thinks(step) for step in range(LONG + AFTER)]
            it.then(says[0], *([reads] if self.mode == "manage" else []), *says[1:])
            yield it

    def steps(self, address: str, name: str, outputs: list[str]) -> None:
        it = gemini.Agent(f"{address}/{self.mode}", name, streamed=True)
        it.contents = self.contents or it.contents
        for output in outputs:
            it.ask()
            last: Any = it.contents[-1]
            last["parts"] = [one for one in last["parts"] if not one.get("thought")]
            for part in last["parts"] if self.mode == "manage" else ():
                part.pop("thoughtSignature", None)
            it.give(output)
        self.contents = it.contents


def thinks(step: int) -> list[Json]:
    thought = {"text": f"I think about {step}.", "thought": True}
    return [thought, {"text": f" Step {step}.\n"}, *GeminiCalls("shell", cmd=f"make {step}")]


def run(
    lab: ContextLab, name: str, api: str, steps: int, *, restarted: bool, mode: str = "manage"
) -> list[Json]:
    """What the model was asked in a session of so many steps, and AFTER more."""
    it = GeminiAgent(mode) if api == "gemini" else OpenAIAgent(api, mode)
    outputs = [LOG, *(f"output {step}" for step in range(1, steps + AFTER))]
    parts = [outputs[:steps], outputs[steps:]] if restarted else [outputs]
    with it.provider() as model:
        for part in parts:
            with proxy(lab.url, model, patience=20) as url:
                it.steps(f"{url}/{key_of(lab)}", name, part)
    assert not model.refused
    return model.bodies


@APIS
def test_a_managed_session_goes_on_as_if_the_proxy_had_not_been_restarted(
    lab: ContextLab, api: str, downloaded: list[list[Any]]
) -> None:
    whole, parted = f"whole-{api}", f"parted-{api}"
    asked = run(lab, whole, api, LONG, restarted=False)
    assert not downloaded
    assert run(lab, parted, api, LONG, restarted=True) == asked
    assert LAST in json.dumps(asked[-1]), "what it read back"
    assert figures(lab, parted) == figures(lab, whole)
    assert not rewinds(lab, parted)


@APIS
def test_a_recorded_session_goes_on_without_a_rewind(lab: ContextLab, api: str) -> None:
    name = f"recorded-{api}"
    run(lab, name, api, SHORT, restarted=True, mode="observe")
    assert figures(lab, name)["steps"] == SHORT + AFTER
    assert not rewinds(lab, name)


@APIS
def test_what_is_downloaded_does_not_grow_with_the_history(
    lab: ContextLab, api: str, downloaded: list[list[Any]]
) -> None:
    for steps in (SHORT, LONG):
        run(lab, f"restarted-{steps}-{api}", api, steps, restarted=True)
    short, long = ([one["content"] for one in messages] for messages in downloaded)
    assert len(short) == 4, "the call of read_back, what it answers, and what followed"
    assert long == short


def figures(lab: ContextLab, name: str) -> Json:
    found = lab.request("GET", f"sessions/{name}")
    return {one: found[one] for one in ("messages", "steps", "turns")}


def rewinds(lab: ContextLab, name: str) -> list[Any]:
    revisions = lab.request("GET", f"sessions/{name}/revisions?run=recorded")["revisions"]
    return [one for one in revisions if one["trigger"] == "rewind"]
