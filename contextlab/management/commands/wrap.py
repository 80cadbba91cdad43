"""`contextlab wrap`: run an agent with its model calls recorded or managed, without changing it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from argparse import REMAINDER, ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import httpx2
from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from contextlab.agents import ADDRESSES, pointed_at
from contextlab.schema import bring_up_to_date
from sessions.actions.accounts.keys import create_key, revoke_key
from sessions.actions.accounts.teams import LOCAL_TEAM, team_called

if TYPE_CHECKING:  # loaded when it runs, because `--help` does not need it
    from contextlab.proxy.app import Proxy

START_SECONDS = 60.0
KEY_LASTS = timedelta(days=7)
"""A key that outlives its agent because this process was killed ends by itself."""


class Command(BaseCommand):
    help = (
        "Run an agent with its model calls recorded, or managed by the team's policy. Codex and "
        "opencode are configured for this run; other agents must read "
        f"{', '.join(ADDRESSES.values())}. Without a server on this machine, one is started, and "
        "ended with the agent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the mode, the server, and the agent's own command line."""
        parser.epilog = "Example: contextlab wrap claude"
        parser.add_argument(
            "--manage", action="store_true", help="send managed contexts (default: only record)"
        )
        parser.add_argument("--server", help="a ContextLab server (default: one on this machine)")
        parser.add_argument("--key", help="an API key of that server (or CONTEXTLAB_TOKEN)")
        parser.add_argument("agent", nargs=REMAINDER, help="a command, such as: claude -p 'Hi'")

    def handle(self, *args: Any, agent: list[str], **options: Any) -> None:
        """Run the agent, and exit with its exit code."""
        command = agent[1:] if agent[:1] == ["--"] else agent
        if not command:
            raise CommandError("Name an agent, such as `contextlab wrap claude`.", returncode=2)
        name = Path(command[0]).name
        if shutil.which(command[0]) is None:
            raise CommandError(
                f"There is no command {command[0]!r}. Install it first.", returncode=2
            )
        with _server(options["server"]) as server, _key(options) as key, _proxy(server) as running:
            _check(server, key)
            address, proxy = running
            mode = "/manage" if options["manage"] else ""
            addresses = {one: f"{address}/proxy/{key}{mode}/{one}" for one in ADDRESSES}
            pointed = pointed_at(addresses | {"openai": f"{addresses['openai']}/v1"}, command)
            code = _run(pointed.command, os.environ | pointed.environment)
        if proxy.seen:
            self.stderr.write(f"See its sessions on {server}/sessions/ (`contextlab serve`).")
        else:
            self.stderr.write("No call was seen.")
        if code:
            raise CommandError(f"{name} ended with exit code {code}.", returncode=code)


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run a command in the foreground; Ctrl+C is its own to handle."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent = subprocess.Popen(  # noqa: S603 (the command that the user gave)
            command, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, before)
        )
        return agent.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _answers(server: str) -> bool:
    try:
        return httpx2.get(f"{server}/healthz", timeout=2).is_success
    except httpx2.TransportError:
        return False


@contextmanager
def _server(named: str | None) -> Iterator[str]:
    """The address of a server that answers; one of our own if there is none for our data here.

    Several agents share it, and the last of them ends it.
    """
    server = (named or f"http://127.0.0.1:{settings.PORT}").rstrip("/")
    if named:
        if not _answers(server):
            raise CommandError(f"{server} does not answer. Start it, or leave --server out.")
        yield server
        return
    pid = settings.DATA_DIR / "wrap-server.pid"
    with (settings.DATA_DIR / "wrap.lock").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        if not _answers(server):
            pid.write_text(str(_started(server)))
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield server
        finally:
            _end_unused(users, pid)


def _started(server: str) -> int:
    """Start a server; return its process id."""
    command = [sys.executable, "-m", "contextlab.cli", "serve"]
    # In a session of its own: Ctrl+C is for the agent.
    ours = subprocess.Popen(  # noqa: S603 (our own)
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + START_SECONDS
    while not _answers(server):
        if ours.poll() is not None or time.monotonic() > until:
            ours.terminate()
            raise CommandError("The server did not start. Run `contextlab serve` to see why.")
        time.sleep(0.2)
    return ours.pid


def _end_unused(users: IO[str], pid: Path) -> None:
    """End a server that a wrap started, unless another agent uses it."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    with suppress(OSError, ValueError):
        started = int(pid.read_text())
        pid.unlink()
        os.kill(started, signal.SIGTERM)


def _check(server: str, key: str) -> None:
    """Raise CommandError if the server does not take the key, as one of another user."""
    answer = httpx2.get(
        f"{server}/api/v1/sessions?limit=1", headers={"Authorization": f"Bearer {key}"}, timeout=10
    )
    if answer.status_code in (401, 403):
        raise CommandError(
            f"The server on {server} does not know this key, so it has other data. Pass --server "
            "and --key, or set PORT to a free port."
        )


@contextmanager
def _key(options: dict[str, Any]) -> Iterator[str]:
    """The key in the options or the environment; for a server here, one until the end."""
    given = options["key"] or os.environ.get("CONTEXTLAB_TOKEN")
    if given:
        yield given
        return
    if options["server"]:
        raise CommandError(
            "No key for that server. Pass --key or set CONTEXTLAB_TOKEN; Settings → Keys creates "
            "one."
        )
    bring_up_to_date()
    team, _ = team_called(LOCAL_TEAM)
    until = timezone.now() + KEY_LASTS
    key, token = create_key(team, "contextlab wrap", expires=until)
    connections.close_all()
    try:
        yield token
    finally:
        revoke_key(key)


@contextmanager
def _proxy(server: str) -> Iterator[tuple[str, Proxy]]:
    """A proxy in this process, and its address; at the end everything is recorded."""
    import uvicorn

    from contextlab.proxy.app import application
    from contextlab.proxy.upstream import PROVIDERS

    given = {one: os.environ[name] for one, name in ADDRESSES.items() if os.environ.get(name)}
    if "openai" in given:
        given["openai"] = given["openai"].rstrip("/").removesuffix("/v1")
    providers = PROVIDERS | given
    app = application(server, providers)
    config = uvicorn.Config(app, port=0, access_log=False, log_config=None)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            if not thread.is_alive():
                raise CommandError("The proxy did not start.")
            time.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", app.state.proxy
    finally:
        running.should_exit = True
        thread.join()
