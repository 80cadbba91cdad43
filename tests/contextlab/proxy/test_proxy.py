"""Agents that only change an address: the real SDK through the proxy, to a provider of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
import uvicorn

from contextlab.client import ContextLab
from contextlab.proxy.app import MOST_BODY, application
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
from tests.provider import Answer, Failure, Provider, RateLimited, Raw, Text, provider

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


def test_a_call_goes_on_as_it_came_if_we_fail(lab: ContextLab, model: Provider) -> None:
    with (
        proxy(NOWHERE, model) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic") as client,
    ):
        raw = client.messages.with_raw_response.create(messages=history(), **WITH)
    assert raw.headers["x-contextlab"] == "passed; no answer from ContextLab"
    assert model.bodies[0]["messages"] == history()


def test_a_call_goes_on_as_it_came_if_the_provider_refuses_ours(
    lab: ContextLab, model: Provider
) -> None:
    model.then(Failure(400, "invalid_request_error", "no"), Text("ok"))
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic", x_contextlab_session="refused") as client,
    ):
        raw = client.messages.with_raw_response.create(messages=history(), **WITH)
    assert raw.headers["x-contextlab"] == "passed; refused with 400"
    assert [len(body["tools"]) for body in model.bodies] == [2, 1]


@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_errors_of_the_provider_reach_the_agent(
    lab: ContextLab, model: Provider, mode: str
) -> None:
    model.then(RateLimited(7))
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/{mode}/anthropic") as client,
        pytest.raises(anthropic.RateLimitError) as caught,
    ):
        client.messages.create(messages=history(), **ASK)
    assert caught.value.response.headers["retry-after"] == "7"


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


def test_agents_go_on_while_our_server_is_away(model: Provider) -> None:
    with proxy(NOWHERE, model) as url:
        for mode in ("observe", "manage"):
            for number in range(12):
                address = f"{url}/clk_{'a' * 46}/{mode}/anthropic"
                with agent(address, x_contextlab_session=f"{mode}-{number}") as client:
                    assert client.messages.create(messages=history(), **ASK).content
    assert len(model.bodies) == 24


@pytest.mark.parametrize("mode", ["observe", "manage"])
@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}", b"data: 5\n\ndata: {\n\n"])
def test_an_answer_that_is_no_message_goes_on_as_it_came(
    lab: ContextLab, model: Provider, mode: str, body: bytes
) -> None:
    streamed = body.startswith(b"data")
    model.then(Raw(body))
    request = {"messages": history(), "stream": streamed, **WITH}
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic/v1/messages"
        answer = httpx2.post(address, json=request, headers=PROVIDER_HEADERS)
    assert (answer.status_code, answer.content) == (200, body)


@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_bodies_that_are_not_ours_to_read_are_passed_on(
    lab: ContextLab, model: Provider, mode: str
) -> None:
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic/v1/"
        for body in (b"[" * 5_000, b"\xff", b"{}"):
            answer = httpx2.post(f"{address}messages", content=body, headers=PROVIDER_HEADERS)
            # A body this deep makes the provider hang up.
            assert answer.status_code == (502 if body.startswith(b"[") else 400)
            assert answer.json()["type"] == "error"
        assert httpx2.get(f"{address}%00", headers=PROVIDER_HEADERS).status_code in (400, 404, 501)
        injected = {"messages": history(), "extra_headers": {"Host": "evil"}, **WITH}
        httpx2.post(f"{address}messages", json=injected, headers=PROVIDER_HEADERS)
        assert mode == "observe" or "extra_headers" not in model.bodies[-1]
        deep: Any = []
        for _ in range(600):
            deep = [deep]
        for more in ({"metadata": {"user_id": "[" * 100_000}}, {"system": deep}):
            request = {"messages": history(), **WITH, **more}
            answer = httpx2.post(f"{address}messages", json=request, headers=PROVIDER_HEADERS)
            assert answer.status_code == (200 if "metadata" in more else 400), answer.text


def test_a_body_that_is_too_large_is_refused(lab: ContextLab) -> None:
    with provider() as model, proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/anthropic/v1/messages"
        pieces = (b" " * 1024 * 1024 for _ in range(MOST_BODY // (1024 * 1024) + 1))
        answer = httpx2.post(address, content=pieces, headers=PROVIDER_HEADERS)
    assert answer.status_code == 413
    assert not model.bodies
