"""Where a real agent is run: a server that can be killed, a proxy, a page that watches."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import say
from contextlab.client import ContextLab
from tests.conftest import CHROMIUM, ROOT, Server, free_port, start_server, wait_until
from tests.empty_store import with_tables
from tests.faults.live_agent import NOTE_STEPS, new_token

PACKAGES = "CONTEXTLAB_AGENTS"
"""Names the folder in which `npm install` was run; without it, PATH is searched."""


def installed(name: str, package: str) -> str:
    """The agent's command; empty, after saying why, if it is not installed."""
    folder = os.environ.get(PACKAGES, "")
    at = str(Path(folder) / "node_modules/.bin") if folder else None
    found = shutil.which(name, path=at)
    if found is None:
        say(f"left out: no {name}. Run `npm install {package}` and name the folder in {PACKAGES}.")
    return found or ""


def version(command: str) -> str:
    """What the agent says of itself."""
    return subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


class Stage:
    """A server on a port of its own, with the environment for `wrap`, `proxy` and the agent."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.home, self.work = folder / "home", folder / "work"
        for made in (self.data, self.home, self.work):
            made.mkdir()
        with_tables(self.data)
        self.port = str(free_port())
        self.server = self._started()
        self.key = new_token(self.data)
        self.lab = ContextLab(self.server.address, self.key)
        self.opened = threading.Event()
        """Set once the replay is open; agents wait for it at an early step."""
        self._proxy: subprocess.Popen[bytes] | None = None
        self._agents: list[subprocess.Popen[str]] = []

    def environment(self, **given: str) -> dict[str, str]:
        """For a command that must find our data, and for an agent without a configuration."""
        kept = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        own = {"HOME": str(self.home), "PORT": self.port, "CONTEXTLAB_DATA_DIR": str(self.data)}
        return {**kept, "PYTHONPATH": str(ROOT), "DATABASE_URL": "", **own, **given}

    def _started(self) -> Server:
        return start_server(self.data, PORT=self.port)

    def kill_server(self) -> None:
        """As a power cut would: the server and all its processes."""
        self.server.process.kill()
        self.server.process.wait()

    def start_server(self) -> None:
        """Start it again, on the same data and port."""
        login = self.server.login, self.server.cookie
        self.server = self._started()
        self.server.login, self.server._cookie = login

    def run(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """Start an agent in the project; its output goes to a file."""
        log = (self.folder / "agent.log").open("a")
        agent = subprocess.Popen(
            command, cwd=self.work, env=self.environment(**environment), text=True,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        self._agents.append(agent)
        return agent

    def wrap(self, *command: str, manage: bool = True, **environment: str) -> subprocess.Popen[str]:
        """Start an agent with `contextlab wrap`."""
        mode = ["--manage"] if manage else []
        ours = [sys.executable, "-m", "contextlab.cli", "wrap", *mode]
        return self.run([*ours, *command], **environment)

    def start_proxy(self, port: int, **providers: str) -> str:
        """Start `contextlab proxy`; return the address for agents that are managed."""
        given = [part for name, url in providers.items() for part in (f"--{name}", url)]
        command = [sys.executable, "-m", "contextlab.cli", "proxy", "--port", str(port), *given]
        self._proxy = subprocess.Popen(
            [*command, "--server", self.server.address],
            env=self.environment(), stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._proxy.stdout is not None
        self._proxy.stdout.readline()
        return f"http://127.0.0.1:{port}/proxy/{self.key}/manage"

    def kill_proxy(self) -> None:
        """As a power cut would."""
        assert self._proxy is not None
        self._proxy.send_signal(signal.SIGKILL)
        self._proxy.wait()

    @property
    def proxy_died(self) -> bool:
        """Whether it was killed and not started again."""
        return self._proxy is not None and self._proxy.poll() is not None

    @property
    def said(self) -> str:
        """All that agents printed."""
        return (self.folder / "agent.log").read_text()

    def close(self) -> None:
        """End what runs."""
        for one in (self._proxy, *self._agents):
            if one is not None and one.poll() is None:
                one.terminate()
                one.wait()
        self.lab.close()
        self.server.kill()
        self.server.process.wait()


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """A stage that ends with the block."""
    made = Stage(folder)
    try:
        yield made
    finally:
        made.close()


def sessions(lab: ContextLab) -> list[dict[str, Any]]:
    """All sessions, the first one last."""
    found: list[dict[str, Any]] = lab.request("GET", "sessions", query={"limit": 100})["sessions"]
    return found


class Watched:
    """A replay in Chromium that follows the newest session and never reloads."""

    def __init__(self, browser: Any, on: Stage) -> None:
        self.context = browser.new_context(base_url=on.server.address)
        on.server.let_in(self.context)
        self.page = self.context.new_page()
        self.on = on

    def open(self, session: str) -> None:
        """Open the replay and note each step that it shows, with its time."""
        self.page.goto(f"/sessions/{session}/")
        self.page.locator("[role=slider]").wait_for(timeout=90_000)
        self.page.evaluate(NOTE_STEPS)
        self.on.opened.set()

    def until_ended(self, agent: subprocess.Popen[str]) -> int:
        """Let the page live until an agent ends; return the agent's exit code."""
        while agent.poll() is None:
            self.page.wait_for_timeout(200)
        return agent.returncode

    def shown(self, last: int) -> list[int]:
        """The steps that it showed, once it shows the last one."""
        self.page.wait_for_function(
            "last => Number(document.querySelector('.goto input')?.value) >= last",
            arg=last, timeout=90_000,
        )  # fmt: skip
        return [step for step, _ in self.page.evaluate("window.shown")]


@contextmanager
def watching(on: Stage) -> Iterator[Watched]:
    """A browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield Watched(browser, on)
        finally:
            browser.close()


def first_session(on: Stage, agent: subprocess.Popen[str]) -> dict[str, Any]:
    """The agent's session as soon as it is stored with a step."""

    def found() -> list[dict[str, Any]]:
        assert agent.poll() is None, on.said[-2000:]
        return [one for one in sessions(on.lab) if one["steps"] and "/" not in one["external_id"]]

    wait_until(found, seconds=120)
    return found()[-1]
