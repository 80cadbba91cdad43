"""Agents that only change an address: the real SDK through the proxy, to a provider of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest
import uvicorn

from contextlab.client import ContextLab
from contextlab.proxy.app import application
from contextlab.proxy.sessions import ObservedSession, SeenCall
from contextlab.proxy.upstream import PROVIDERS
from tests.conftest import Server, free_port
from tests.contextlab.client.test_client import ASK, lab, model
from tests.contextlab.client.test_client_budgets import limit
from tests.contextlab.client.test_paused import act
from tests.contextlab.client.test_reading_back import (
    WITH,
    check_prefixes,
    history,
    kinds,
    reads,
    script,
    use,
)
from tests.provider import Answer, Provider, Text

__all__ = ["lab", "model", "script"]

Agent = Callable[..., anthropic.Anthropic]
NOWHERE = "http://127.0.0.1:9"
PROVIDER_HEADERS = {"x-api-key": "none", "anthropic-version": "2023-06-01"}


def key_of(lab: ContextLab) -> str:
    return str(lab._http.headers["Authorization"]).removeprefix("Bearer ")


@contextmanager
def proxy(server: str, model: Any, patience: float = 2, spool: Path | None = None) -> Iterator[str]:
    """A proxy on this machine, and its address; what it records is stored once it has ended.

    `model` is a provider, or addresses by the proxy's names.
    """
    urls = model if isinstance(model, Mapping) else dict.fromkeys(PROVIDERS, model.url)
    app = application(server, urls, patience, spool)
    port = free_port()
    running = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, access_log=False))
    started = threading.Event()
    startup = running.startup

    async def starting(**given: Any) -> None:
        await startup(**given)
        started.set()

    running.startup = starting  # type: ignore[method-assign]
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        assert started.wait(20)
        yield f"http://127.0.0.1:{port}/proxy"
    finally:
        running.should_exit = True
        thread.join()


@contextmanager
def agent(address: str, **headers: str) -> Iterator[anthropic.Anthropic]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with anthropic.Anthropic(
        api_key="none", base_url=address, max_retries=0, default_headers=named
    ) as client:
        yield client


def called(client: anthropic.Anthropic, streamed: bool, **given: Any) -> anthropic.types.Message:
    if not streamed:
        return client.messages.create(**given)
    with client.messages.stream(**given) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_an_observed_call_is_passed_on_as_it_is_and_recorded(
    lab: ContextLab, model: Provider, streamed: bool
) -> None:
    name = f"observed-{streamed}"
    given = {**WITH, "system": "Be brief.", "messages": history()}
    model.answer = lambda _: Answer((use("t9", "Bash", command="ls"),), "tool_use")
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/anthropic", x_claude_code_session_id=name) as client,
    ):
        reply = called(client, streamed, **given)
    assert reply.content[0].to_dict() == use("t9", "Bash", command="ls")
    [body] = model.bodies
    body.pop("stream", None)
    assert body == json.loads(json.dumps(given))
    assert kinds(lab, name) == [["text"], ["Bash"], ["tool_result"], ["Bash"]]
    session = lab.request("GET", f"sessions/{name}")
    assert session["policy"] == "passthrough@1"
    assert session["steps"] == 2


@pytest.mark.parametrize("streamed", [False, True])
def test_a_managed_call_reads_back_without_the_agent(
    lab: ContextLab, model: Provider, script: list[Any], streamed: bool
) -> None:
    name = f"managed-{streamed}"
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/manage/anthropic"
        with agent(address, x_claude_code_session_id=name) as client:
            script += [reads(), Text("That is all.")]
            reply = called(client, streamed, messages=history(), **WITH)
            assert [block.type for block in reply.content] == ["text", "text"]
            assert (reply.content[-1].text, reply.stop_reason) == ("That is all.", "end_turn")
    assert [body["tools"][-1]["name"] for body in model.bodies] == ["read_back", "read_back"]
    assert kinds(lab, name)[3:] == [["text", "read_back"], ["tool_result"], ["text"]]
    assert not model.refused


@pytest.mark.parametrize("beside", [(), (use("t2", "Bash", command="ls"),)])
def test_a_new_proxy_knows_what_the_model_read_back(
    lab: ContextLab, model: Provider, script: list[Any], beside: tuple[Any, ...]
) -> None:
    name, talk = f"resumed-{len(beside)}", history()
    script += [
        reads(*beside),
        *([] if beside else [Text("That is all.")]),
        Text("Bye."),
        Text("Bye."),
    ]
    for question in ("Thanks.", "Really?"):
        with proxy(lab.url, model) as url:
            address = f"{url}/{key_of(lab)}/manage/anthropic"
            with agent(address, x_claude_code_session_id=name) as client:
                reply = client.messages.create(messages=talk, **WITH)
                talk.append({"role": "assistant", "content": reply.to_dict()["content"]})
                talk.append(answer_to(reply, question))
                if question == "Really?":
                    client.messages.create(messages=talk, **WITH)
    check_prefixes(model)
    revisions = lab.request("GET", f"sessions/{name}/revisions")["revisions"]
    assert not any(one["trigger"] == "rewind" for one in revisions)
    stored = lab.request("GET", f"sessions/{name}")
    assert stored["messages"] == (9 if beside else 11)


def answer_to(reply: anthropic.types.Message, question: str) -> dict[str, Any]:
    """A person's next question, or the results of the reply's calls."""
    calls = [one.id for one in reply.content if one.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "a.py"} for one in calls]
    return {"role": "user", "content": results or question}


def test_other_paths_and_side_calls_are_only_passed_on(lab: ContextLab, model: Provider) -> None:
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/manage/anthropic"
        headers = {"user_agent": "claude-cli/2.1", "x_claude_code_session_id": "aside"}
        with agent(address, **headers) as client:
            counted = client.messages.count_tokens(model="m", messages=history())
            client.messages.create(messages=[{"role": "user", "content": "Make a title."}], **ASK)
    assert counted.input_tokens > 0
    sessions = lab.request("GET", "sessions", query={"limit": 100})["sessions"]
    assert not any(one["external_id"] == "aside" for one in sessions)


def test_a_sub_agent_is_a_child_of_its_session(lab: ContextLab, model: Provider) -> None:
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/anthropic"
        for part in ({}, {"x_claude_code_agent_id": "a1"}):
            with agent(address, x_claude_code_session_id="tree", **part) as client:
                client.messages.create(messages=history(), **WITH)
    child = lab.request("GET", "sessions/tree/a1/manifest")["session"]
    assert child["parent"]["id"] == lab.session("tree").id


def test_a_budget_refuses_a_managed_call(served: Any, lab: ContextLab, model: Provider) -> None:
    lab.session("poor")
    limit(served, "poor", 0, "approval")
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic", x_contextlab_session="poor") as client,
        pytest.raises(anthropic.APIStatusError, match="ContextLab") as caught,
    ):
        client.messages.create(messages=history(), **WITH)
    assert caught.value.status_code == 402
    assert not model.bodies


def test_a_paused_session_is_tried_again_later(
    lab: ContextLab, model: Provider, served: Server
) -> None:
    lab.session("on hold", model="claude-sonnet-5")
    act(served, "on%20hold", "pause", "look at the plan")
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic", x_contextlab_session="on hold") as client,
        pytest.raises(anthropic.RateLimitError, match="look at the plan") as caught,
    ):
        client.messages.create(messages=history(), **WITH)
    assert int(caught.value.response.headers["Retry-After"]) >= 5
    assert not model.bodies, "no call goes out while it is paused"


def test_calls_of_a_session_are_recorded_in_their_order(
    lab: ContextLab, model: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, first_may_end = [], threading.Event()
    record = ObservedSession.record

    def slow(self: ObservedSession, seen: SeenCall, answer: bytes) -> None:
        began.append(len(seen.request["messages"]))
        if len(began) == 1:
            assert first_may_end.wait(20)
        record(self, seen, answer)

    monkeypatch.setattr(ObservedSession, "record", slow)
    talk = history()
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/anthropic", x_claude_code_session_id="ordered") as client,
    ):
        for _ in range(5):
            reply = client.messages.create(messages=talk, **WITH)
            talk += [
                {"role": "assistant", "content": reply.content[0].text},
                {"role": "user", "content": "Go on."},
            ]
        first_may_end.set()
    assert began == sorted(began)
    assert lab.request("GET", "sessions/ordered")["steps"] == 6
    assert not lab.request("GET", "sessions/ordered/revisions")["revisions"]
