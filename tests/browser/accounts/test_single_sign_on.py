"""Single sign-on at a provider of OpenID Connect: roles by group, and what ends with a group."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import Server, free_port, wait_until

log = logging.getLogger(__name__)


@pytest.fixture
def provider() -> Iterator[str]:
    """Its address. A process of its own: what its libraries warn of is not about us."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with socket.socket() as probe:
        wait_until(lambda: probe.connect_ex(("127.0.0.1", port)) == 0)
    yield f"http://localhost:{port}"
    process.kill()
    process.wait()


@pytest.fixture
def server(provider: str, server_with: Callable[..., Server]) -> Server:
    return server_with(
        CONTEXTLAB_OIDC_URL=provider,
        CONTEXTLAB_OIDC_CLIENT_ID="contextlab",
        CONTEXTLAB_OIDC_CLIENT_SECRET="a secret",
        CONTEXTLAB_OIDC_NAME="Example",
        CONTEXTLAB_OIDC_DOMAINS="example.org=research",
        CONTEXTLAB_OIDC_GROUPS="lab admins=ops:owner, lab=ops:editor, readers=ops",
    )


@pytest.fixture
def opened(browser: Any, server: Server) -> Iterator[Any]:
    """A page; the test fails on what the content policy or a script refuses."""
    context = browser.new_context(base_url=server.address)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else 0)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert not wrong, wrong


def put(provider: str, name: str, **claims: Any) -> None:
    """What the provider says of a person from now on."""
    url, body = f"{provider}/users/{name}", json.dumps(claims).encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, body, headers, method="PUT")).close()


def sign_in(page: Any, name: str) -> None:
    page.goto("/login/")
    page.get_by_role("link", name="Sign in with Example").click()
    page.get_by_placeholder("sub").fill(name)
    page.get_by_role("button", name="Authorize", exact=True).click()
    page.wait_for_url("**/127.0.0.1:*/**")


def status(server: Server, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    asked = urllib.request.Request(f"{server.address}/api/v1/keys", headers=headers)
    try:
        with urllib.request.urlopen(asked) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_a_group_gives_a_role_and_its_loss_ends_pages_keys_and_sockets(
    browser: Any, opened: Any, provider: str, server: Server
):
    put(provider, "mara", preferred_username="mara", groups=["lab", "readers", "others"])
    sign_in(opened, "mara")
    opened.goto("/account/")
    assert "editor" in opened.locator("table").first.inner_text()
    assert opened.get_by_role("heading", name="Set a password").count() == 0
    opened.goto("/settings/keys/?team=ops")
    opened.get_by_label("Name", exact=True).first.fill("ci")
    opened.get_by_role("button", name="Create key").click()
    token = opened.get_by_text("clk_").first.inner_text().strip()
    assert status(server, token) == 200
    closed: list[float] = []
    opened.on(
        "websocket", lambda socket: socket.on("close", lambda _: closed.append(time.monotonic()))
    )
    with opened.expect_websocket():
        opened.goto("/sessions/")

    put(provider, "mara", preferred_username="mara", groups=["others"])
    again = browser.new_context(base_url=server.address).new_page()
    sign_in(again, "mara")
    ended = time.monotonic()
    assert "in no group or domain with access" in again.get_by_role("alert").inner_text()
    assert status(server, token) == 401
    refused = time.monotonic()
    wait_until(lambda: opened.wait_for_timeout(100) or closed)
    # A figure of `docs/operating/people.md`, not a claim: `pytest --log-cli-level=INFO` shows it.
    log.info("key: %.1f s at most; socket: %.1f s", refused - ended, closed[0] - ended)
    assert opened.goto("/sessions/").status == 403, "signed out"
    again.context.close()


def test_a_verified_address_of_a_domain_gives_access_and_others_do_not(
    opened: Any, provider: str, server: Server
):
    put(provider, "eve", email="eve@example.org", email_verified=False)
    sign_in(opened, "eve")
    assert "in no group or domain with access" in opened.get_by_role("alert").inner_text()
    put(provider, "jo", email="guardrail@EXAMPLE.org", email_verified=True)
    sign_in(opened, "jo")
    opened.goto("/account/")
    name = opened.locator("h1").inner_text()
    assert (name.startswith("guardrail-"), name == "guardrail-") == (True, False)
    assert "viewer" in opened.locator("table").first.inner_text()


def test_what_goes_wrong_at_the_provider_is_said(opened: Any, provider: str, server: Server):
    opened.goto("/login/")
    opened.get_by_role("link", name="Sign in with Example").click()
    opened.get_by_role("button", name="Deny").click()
    assert "did not work" in opened.get_by_role("alert").inner_text()
    opened.goto("/oidc/sso/login/callback/?code=x&state=y")
    assert "did not work" in opened.get_by_role("alert").inner_text()
    assert opened.goto("/oidc/other/login/").status == 404
