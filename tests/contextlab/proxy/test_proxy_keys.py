"""The proxy asks for a key of ours before it sends anything on."""

from __future__ import annotations

import asyncio
import io
import socket

import anthropic
import httpx2
import pytest
from django.core.management import CommandError, call_command
from starlette.requests import Request

from contextlab.client import ContextLab
from contextlab.client.connection import Refused
from contextlab.proxy import keys
from contextlab.proxy.app import address_of
from contextlab.proxy.keys import KnownKeys
from contextlab.proxy.upstream import Upstream
from tests.contextlab.client.test_client import ASK, lab, model
from tests.contextlab.client.test_reading_back import history
from tests.contextlab.proxy.test_proxy import agent, key_of, proxy
from tests.provider import Provider

__all__ = ["lab", "model"]


@pytest.mark.parametrize("key", ["", "clk_" + "a" * 46, "sk-ant-1"])
def test_nothing_is_sent_on_without_a_valid_key(lab: ContextLab, model: Provider, key: str) -> None:
    with (
        proxy(lab.url, model) as url,
        agent(f"{url}/anthropic", x_contextlab_key=key) as client,
        pytest.raises(anthropic.AuthenticationError, match="valid ContextLab key"),
    ):
        client.messages.create(messages=history(), **ASK)
    assert not model.bodies


def test_a_key_of_other_characters_does_not_count_as_our_failure(
    lab: ContextLab, model: Provider
) -> None:
    with proxy(lab.url, model) as url:
        for key in (b"clk_\xe9", b"clk_" + b"a" * 46):  # the second is checked, too
            headers = {b"x-contextlab-key": key}
            answer = httpx2.post(f"{url}/anthropic/v1/messages", headers=headers, json={})
            assert answer.status_code == 401
    assert not model.bodies


def test_a_base_url_may_end_in_a_slash() -> None:
    path = b"/proxy/clk_a/manage/anthropic//v1/messages"
    request = Request({"type": "http", "raw_path": path, "headers": []})
    assert address_of(request) == ("clk_a", "manage", "anthropic", "v1/messages")


@pytest.mark.parametrize("path", ["v1/../secret", "v1/%2e%2E/secret", "..%5Csecret", "./v1/models"])
def test_a_path_does_not_leave_the_providers_address(path: str) -> None:
    upstream = Upstream("https://provider.test/base")
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": []})
    with pytest.raises(httpx2.InvalidURL):
        asyncio.run(upstream.send(request, path, [], b""))


@pytest.mark.parametrize("mode", ["observe", "manage"])
def test_a_key_that_is_revoked_sends_nothing_on_once_its_check_is_due(
    lab: ContextLab, model: Provider, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: KnownKeys, key: str) -> None:
        raise Refused(401, {"detail": f"{len(key)} characters, revoked"})

    monkeypatch.setattr(keys, "KNOWN_SECONDS", 0)
    address = f"/{key_of(lab)}/{mode}/anthropic"
    with proxy(lab.url, model) as url, agent(url + address) as client:
        client.messages.create(messages=history(), **ASK)
        monkeypatch.setattr(KnownKeys, "_check", refused)
        with pytest.raises(anthropic.AuthenticationError, match="valid ContextLab key"):
            client.messages.create(messages=history(), **ASK)
    assert len(model.bodies) == 1


def test_a_port_in_use_is_an_error_that_names_it() -> None:
    out = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            CommandError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use\\."
        ):
            call_command("proxy", port=port, stdout=out)
    assert not out.getvalue()
