"""Running servers, as tests ask them: one of its own data, or one that the files of a run share."""

from __future__ import annotations

import http.cookiejar
import os
import re
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests import preloaded
from tests.empty_store import ROOT, with_tables

START_SECONDS = 300  # beside eight busy processes on two cores a start took over 60
ADDRESS = re.compile(r"^(https?://[\w.:\[\]-]+)(/.*)?/(login/[\w-]+/)?$")
SESSION = "contextlab_session"
CSRF = re.compile(r'name="csrf-token" content="(\w+)"')


@dataclass
class Server:
    """A `contextlab serve` of its own, with its own data."""

    process: preloaded.Process
    data_dir: Path
    address: str
    """Without a slash at its end."""
    login: str
    """The printed address: signs in once, where accounts have no passwords."""
    team: str = "local"
    """Slug of the team whose pages the local user has open."""
    _cookie: str = ""

    @property
    def cookie(self) -> str:
        """The browser session of the local user, signed in with the printed address."""
        if not self._cookie:
            asked = urllib.request.Request(self.login, headers={"Sec-Fetch-Site": "none"})
            jar = http.cookiejar.CookieJar()
            urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar)).open(asked).close()
            self._cookie = next(cookie.value or "" for cookie in jar if cookie.name == SESSION)
        return self._cookie

    def let_in(self, context: Any) -> None:
        """Sign in the local user in a browser context of Playwright, with the team's pages."""
        self.ask("GET", "/account/")  # selects the team
        context.add_cookies([{"name": SESSION, "value": self.cookie, "url": self.address}])

    def with_team(self, name: str) -> Server:
        """The same server, with the pages of a new team of the local user's."""
        made = self.ask("POST", "/account/", data={"act": "team", "name": name})
        return replace(self, team=parse_qs(urlsplit(made.headers["Location"]).query)["team"][0])

    def new_key(self) -> str:
        """A key of the team, which reads and writes."""
        return str(self.ask("POST", "/settings/keys/", data={"of": "team"}).json()["token"])

    def ask(self, method: str, path: str, **body: Any) -> httpx2.Response:
        """The answer to what the local user does in a browser, in the team; not followed."""
        signed_in = {SESSION: self.cookie}
        with httpx2.Client(
            base_url=self.address, cookies=signed_in, timeout=START_SECONDS
        ) as browser:
            found = CSRF.search(browser.get("/account/").text)
            assert found
            headers = {"X-CSRFToken": found[1], "Referer": self.address}
            headers["Accept"] = "application/json"
            team = {"team": self.team}
            return browser.request(method, path, params=team, headers=headers, **body)

    @property
    def log(self) -> str:
        """What it wrote to stderr so far."""
        return (self.data_dir / "stderr.log").read_text()

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return int(self.address.rpartition(":")[2])

    def stop(self) -> int:
        """Ends it as an operator would; returns its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(START_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends it as a power cut would; harmless when it has ended."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


STARTED: list[Server] = []
"""All servers of this run, also those that have ended."""


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(data_dir: Path, **environment: str) -> Server:
    """Starts `contextlab serve` and returns when it has printed its address."""
    env = {
        **{name: value for name, value in os.environ.items() if name != "REDIS_URL"},
        "PYTHONPATH": str(ROOT),
        "CONTEXTLAB_DATA_DIR": str(data_dir),
        "DATABASE_URL": "",
        "PORT": str(free_port()),
        **environment,
    }
    with (data_dir / "stderr.log").open("a") as log:
        process = preloaded.start(
            ["-m", "contextlab.cli", "serve"],
            cwd=data_dir,  # it must not matter where it is started
            env=env,
            stdout=subprocess.PIPE,
            stderr=log.fileno(),
        )
    assert process.stdout is not None
    # A server that hangs is killed, which ends the loop below.
    limit = threading.Timer(START_SECONDS, process.kill)
    limit.start()
    found = next((found for line in process.stdout if (found := ADDRESS.match(line))), None)
    limit.cancel()
    server = Server(process, data_dir, found[1] if found else "", found[0].strip() if found else "")
    if not found:
        server.kill()
        raise RuntimeError(f"contextlab serve did not start: {server.log}")
    STARTED.append(server)
    return server


@contextmanager
def running(folder: Path, **environment: str) -> Iterator[Server]:
    """A server with an empty store in a folder, which must end well if it was not ended."""
    server = start_server(with_tables(folder), **environment)
    yield server
    if server.process.poll() is None:
        assert server.stop() == 0, server.log
