"""Calls that the proxy passes on as they came: failures of ours, of the provider, odd bodies."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from contextlab.client import ContextLab, events
from contextlab.proxy import calls, recorder
from contextlab.proxy.app import MOST_BODY
from contextlab.proxy.upstream import Upstream, forwarded, returned
from tests.contextlab.client.test_client import ASK, lab, model
from tests.contextlab.client.test_reading_back import WITH, history
from tests.contextlab.proxy.test_proxy import (
    NOWHERE,
    PROVIDER_HEADERS,
    agent,
    called,
    key_of,
    proxy,
)
from tests.provider import Failure, Provider, RateLimited, Raw, Text, provider

__all__ = ["lab", "model"]


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


def test_an_answer_too_long_to_read_reaches_the_agent_whole(
    lab: ContextLab, model: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST_READ", 100)
    model.then(Text("word " * 100))
    with proxy(lab.url, model) as url, agent(f"{url}/{key_of(lab)}/manage/anthropic") as client:
        raw = client.messages.with_raw_response.create(messages=history(), **ASK)
    assert raw.headers["x-contextlab"] == "managed; its answer is too long to read"
    assert raw.parse().content[0].text == "word " * 100


def test_a_stream_with_an_event_too_long_to_read_ends_with_an_error(
    lab: ContextLab, model: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LONGEST_EVENT", 100)
    model.then(Raw(b"data: " + b"x" * 300_000, content_type="text/event-stream"))
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/manage/anthropic") as client,
        pytest.raises(anthropic.APIError, match="an event of the answer is too long"),
    ):
        called(client, streamed=True, messages=history(), **ASK)


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


def test_agents_go_on_while_our_server_is_away(
    model: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come later too, when the calls of the first already wait to be stored."""
    monkeypatch.setattr(recorder, "LAST_SECONDS", 0.1)

    def answer(url: str, session: str) -> list[Any]:
        with agent(url, x_contextlab_session=session) as client:
            return client.messages.create(messages=history(), **ASK).content

    with proxy(NOWHERE, model, patience=0.5) as url, ThreadPoolExecutor(12) as agents:
        for mode in ("observe", "manage"):
            address = f"{url}/clk_{'a' * 46}/{mode}/anthropic"
            asked = [agents.submit(answer, address, f"{mode}-{number}") for number in range(12)]
            assert all(one.result() for one in asked)
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


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"} | {
    "content": [{"type": "text", "text": "whole"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize("mode", ["observe", "manage"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_an_answer_in_an_encoding_that_nobody_asked_for_is_not_touched(
    lab: ContextLab, model: Provider, mode: str, streamed: bool, encoding: str
) -> None:
    kind = "text/event-stream" if streamed else "application/json"
    model.then(Raw(b"\x28\xb5packed", content_type=kind, encoding=encoding))
    request = {"messages": history(), "stream": streamed, **WITH}
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic/v1/messages"
        with httpx2.stream("POST", address, json=request, headers=PROVIDER_HEADERS) as answer:
            assert b"".join(answer.iter_raw()) == b"\x28\xb5packed"
    assert answer.headers["content-encoding"] == encoding
    assert answer.headers["x-contextlab"].endswith("its answer is compressed")


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_whose_compression_is_damaged_is_named(
    lab: ContextLab, model: Provider, streamed: bool
) -> None:
    kind = "text/event-stream" if streamed else "application/json"
    model.then(Raw(b"nonsense", content_type=kind, encoding="gzip"))
    request = {"messages": history(), "stream": streamed, **WITH}
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/manage/anthropic/v1/messages"
        answer = httpx2.post(address, json=request, headers=PROVIDER_HEADERS)
    assert answer.status_code == (200 if streamed else 502)
    assert "cannot be decompressed" in answer.text


@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_a_message_in_place_of_a_stream_reaches_the_agent_and_is_stored(
    lab: ContextLab, model: Provider, mode: str
) -> None:
    model.then(Raw(json.dumps(MESSAGE).encode()))
    request = {"messages": history(), "stream": True, **WITH}
    named = PROVIDER_HEADERS | {"x-contextlab-session": f"unstreamed-{mode}"}
    with proxy(lab.url, model) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic/v1/messages"
        assert httpx2.post(address, json=request, headers=named).json() == MESSAGE
    stored = lab.session(f"unstreamed-{mode}").messages()
    assert stored[-1]["content"][0]["text"] == "whole"


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


def test_the_providers_cookies_are_of_the_call_they_answer_and_headers_are_any_bytes() -> None:
    asked: list[list[tuple[bytes, bytes]]] = []

    async def answered(request: Request) -> Response:
        asked.append(request.scope["headers"])
        answer = Response("{}", headers={"Set-Cookie": "account=one"})
        answer.raw_headers.append((b"x-region", "Łódź".encode()))
        return answer

    async def called(upstream: Upstream, *headers: tuple[bytes, bytes]) -> httpx2.Response:
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b""}
        request = Request({**scope, "headers": [(b"host", b"lab.test"), *headers]})
        return await upstream.send(request, "v1", forwarded(request.headers, "clk_a"), b"")

    async def all_calls() -> httpx2.Response:
        upstream = Upstream("http://provider.test")
        served = httpx2.ASGITransport(Starlette(routes=[Route("/v1", answered)]))
        upstream._http._transport = served
        await called(upstream)
        return await called(upstream, (b"x-title", b"M\xfcller"))

    answer = asyncio.run(all_calls())
    assert (b"x-title", b"M\xfcller") in asked[1]
    assert not [name for name, _ in asked[1] if name == b"cookie"]
    mine = returned(answer.headers)
    assert mine["set-cookie"] == "account=one"
    assert mine["x-region"].encode("latin-1") == "Łódź".encode()
