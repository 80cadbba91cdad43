"""What deploy/Caddyfile promises, behind TLS, at the root of a name and below a path of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ROOT, Server, free_port, running, unavailable, wait_until
from tests.contextlab.test_pages import LISTENS
from tests.faults.live_agent import new_token
from tests.provider import Text
from tests.provider_messages import events_of, message

CADDYFILE = ROOT / "deploy" / "Caddyfile"


def caddy() -> str:
    """Path of Caddy."""
    found = shutil.which("caddy")
    if found is None:
        unavailable("caddy is not installed")
    return str(found)


def stopped_server() -> str:
    """The address of a server that does not answer; empty if Caddy is older than 2.7, which cannot
    send a body to another one."""
    said = subprocess.run([caddy(), "version"], capture_output=True, text=True, check=True).stdout
    major, minor, *_ = map(int, re.findall(r"\d+", said))
    return f"127.0.0.1:{free_port()}" if (major, minor) >= (2, 7) else ""


class Deployed(NamedTuple):
    """An address with https and root path, its authority's certificate, and a key."""

    address: str
    authority: Path
    token: str
    server: Server

    @property
    def root(self) -> str:
        """The path below which it is; empty at the root of its name."""
        return self.address.removeprefix(self.server.address)

    def ask(self, path: str, body: Any = None, **headers: str) -> HTTPResponse:
        """Send a request, with JSON if there is a body."""
        asked = urllib.request.Request(
            f"{self.address}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | headers,
        )
        trusted = ssl.create_default_context(cafile=str(self.authority))
        found: HTTPResponse = urllib.request.urlopen(asked, context=trusted, timeout=60)
        return found


@pytest.fixture(scope="module", params=["", "/contextlab"], ids=["root", "path"])
def deployed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    """Caddy in front of a server, one that does not answer, and an agent proxy."""
    folder, root, agents = tmp_path_factory.mktemp("site"), request.param, free_port()
    port, origin = free_port(), f"https://localhost:{free_port()}"
    settings = {
        "PORT": str(port),
        "CONTEXTLAB_ROOT_PATH": root,
        "CONTEXTLAB_ORIGINS": origin,
        "CONTEXTLAB_BEHIND_TLS_PROXY": "1",
    }
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "CONTEXTLAB_SITE": origin,
        "CONTEXTLAB_ROOT_PATH": root,
        "CONTEXTLAB_HTTP_PORT": str(free_port()),
        "CONTEXTLAB_WEB_SERVERS": f"to 127.0.0.1:{port} {stopped_server()}",
        "CONTEXTLAB_AGENT_PROXIES": f"to 127.0.0.1:{agents}",
    }
    command = [caddy(), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"]
    authority = folder / "caddy/pki/authorities/local/root.crt"
    with ExitStack() as stack:
        server = stack.enter_context(running(folder, **settings))
        with (folder / "caddy.log").open("w") as log:
            front = subprocess.Popen(command, env=environment, stderr=log)
        stack.callback(front.wait)
        stack.callback(front.kill)
        made = Deployed(f"{origin}{root}", authority, new_token(folder, **settings), server)
        wait_until(authority.exists)
        wait_until(lambda: answers(made))
        stack.enter_context(agent_proxy(made, folder, agents))
        yield made


def answers(made: Deployed) -> bool:
    """Whether there is an answer."""
    try:
        return made.ask("/healthz").status == 200
    except OSError:
        return False


@contextmanager
def agent_proxy(made: Deployed, folder: Path, port: int) -> Iterator[None]:
    """An agent proxy that records to the server through Caddy, in front of `Slow`."""
    provider = HTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    asked = ["proxy", "--port", str(port), "--server", made.address]
    asked += ["--anthropic", f"http://127.0.0.1:{provider.server_port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "contextlab.cli", *asked],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CONTEXTLAB_DATA_DIR": str(folder / "agents"),
            "CONTEXTLAB_ROOT_PATH": made.root,
            "SSL_CERT_FILE": str(made.authority),
        },
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        provider.shutdown()
        provider.server_close()


class Slow(BaseHTTPRequestHandler):
    """A provider that sends an event, and the others once `more` is set."""

    more = threading.Event()

    def do_POST(self) -> None:
        """Stream a message."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for name, value in events_of(message(body, Text("Hello."))):
            self.wfile.write(f"event: {name}\ndata: {json.dumps(value)}\n\n".encode())
            self.wfile.flush()
            self.more.wait(60)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_the_shipped_configuration_is_valid(tmp_path: Path) -> None:
    command = [caddy(), "validate", "--config", str(CADDYFILE), "--adapter", "caddyfile"]
    folders = dict.fromkeys(("XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(tmp_path))
    for name in ({}, {"CONTEXTLAB_SITE": "lab.example.com", "CONTEXTLAB_ROOT_PATH": "/lab"}):
        assert subprocess.run(command, env={**os.environ, **folders, **name}).returncode == 0


def test_a_person_signs_in_and_every_page_file_and_socket_is_below_the_address(
    browser: Any, deployed: Deployed
) -> None:
    invited = subprocess.run(
        [sys.executable, "-m", "contextlab.cli", "invite", "--json"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "CONTEXTLAB_DATA_DIR": str(deployed.server.data_dir),
            "CONTEXTLAB_ORIGINS": deployed.server.address,
            "CONTEXTLAB_ROOT_PATH": deployed.root,
        },
        capture_output=True,
        check=True,
    )
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    seen: dict[str, int] = {}
    page.on("response", lambda answer: seen.update({answer.url: answer.status}))
    page.goto(json.loads(invited.stdout)["url"])
    page.get_by_label("Name", exact=True).first.fill("mara")
    for label in ("Password", "Repeat password"):
        page.get_by_label(label, exact=True).first.fill("seven green parcels")
    page.get_by_role("button", name="Create account").click()
    page.locator("nav").first.wait_for()
    links = page.locator("nav a").evaluate_all("all => all.map(one => one.href)")
    assert len(links) > 5
    for link in links:
        page.goto(link, wait_until="networkidle")
    page.goto(f"{deployed.address}/start/")
    assert f"{deployed.address}/api/v1" in page.content()
    assert page.evaluate(LISTENS, deployed.address.replace("https", "wss"))
    context.close()
    assert {url: status for url, status in seen.items() if status >= 400} == {}
    assert all(url.startswith(f"{deployed.address}/") for url in seen)
    assert {url.rpartition(".")[2] for url in seen if "/static/" in url} >= {"css", "js"}


def test_the_api_answers_and_takes_large_bodies(deployed: Deployed) -> None:
    text = "x" * 1_000_000
    told = {"messages": [{"role": "user", "content": text}]}
    assert deployed.ask("/api/v1/sessions/large/messages", told).status == 201
    found = json.load(deployed.ask("/api/v1/sessions/large/messages"))
    assert found["messages"][0]["content"] in (text, [{"type": "text", "text": text}])


def test_an_agent_reads_the_first_event_before_the_provider_sends_the_last(
    deployed: Deployed,
) -> None:
    Slow.more.clear()
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "stream": True}
    body |= {"messages": [{"role": "user", "content": "Hello?"}]}
    path = f"/proxy/{deployed.token}/anthropic/v1/messages"
    answer = deployed.ask(path, body, **{"x-api-key": "none", "anthropic-version": "2023-06-01"})
    assert answer.readline() == b"event: message_start\n"
    assert not Slow.more.is_set()
    Slow.more.set()
    assert b"message_stop" in answer.read()

    def recorded() -> bool:
        rows = json.load(deployed.ask("/api/v1/sessions"))["sessions"]
        return any(row["external_id"] != "large" for row in rows)

    wait_until(recorded)


def test_addresses_with_keys_are_not_in_its_log(tmp_path: Path) -> None:
    port = free_port()
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path),
        "CONTEXTLAB_SITE": f"http://127.0.0.1:{port}",
        "CONTEXTLAB_ROOT_PATH": "/contextlab",
        "CONTEXTLAB_AGENT_PROXIES": f"to 127.0.0.1:{free_port()}",
    }
    command = [caddy(), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"]
    asked = f"http://127.0.0.1:{port}/contextlab/proxy/clk_s3cret/anthropic/v1/messages"
    with (tmp_path / "log").open("w+") as log:
        front = subprocess.Popen(command, env=environment, stderr=log)
        try:
            wait_until(lambda: refused_by(asked) == 502)
        finally:
            front.terminate()
            front.wait()
        said = (tmp_path / "log").read_text()
    assert "connection refused" in said
    assert "/proxy/" in said
    assert "s3cret" not in said


def refused_by(address: str) -> int:
    """The status of an error; 0 if nothing listens yet."""
    try:
        urllib.request.urlopen(address, timeout=60)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0
    raise AssertionError(f"{address} answers")
