"""Shared by benchmarks of the running product: a server, a key, a client, PostgreSQL."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
from benchmarks.processes import cpu_seconds, memory_mb  # noqa: E402
from tests import on_postgres  # noqa: E402
from tests.conftest import Server, start_server  # noqa: E402


class NotThere(Exception):
    """The server answered 404."""


class Agent:
    """One kept-open connection with a key; it does not retry."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.received = 0

    def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body. Raises RuntimeError when it is no 2xx."""
        self.connection.request(method, f"/api/v1/{path}", body, self.headers)
        response = self.connection.getresponse()
        data = response.read()
        self.received = len(data)
        if response.status == 404:
            raise NotThere(path)
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]!r}")
        return data

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send and receive JSON."""
        given = None if body is None else json.dumps(body).encode()
        return json.loads(self.send(method, path, given))


class Lab:
    """A `contextlab serve` of its own with a key; `agent()` opens a connection."""

    def __init__(self, server: Server, token: str, folder: Path) -> None:
        self.server, self.token, self.folder = server, token, folder

    @property
    def pid(self) -> int:
        """Of the server; job processes are its children."""
        return self.server.process.pid

    def agent(self) -> Agent:
        """A connection of its own."""
        return Agent(self.server.port, self.token)

    def cpu(self) -> float:
        """CPU seconds of server and job processes so far."""
        return cpu_seconds(self.pid)

    def memory(self) -> tuple[float, float]:
        """MB of server and job processes: RSS, PSS."""
        return memory_mb(self.pid)

    def settle(self, job: str | None) -> None:
        """Return when a job of an append has ended: the session is advanced and measured.

        A job that ended well is gone. Raises RuntimeError when it failed.
        """
        agent = self.agent()
        while job:
            try:
                state = agent.ask("GET", f"jobs/{job}")["state"]
            except NotThere:
                return
            if state not in ("queued", "running"):
                raise RuntimeError(f"job {job}: {state}")
            time.sleep(0.1)


@contextmanager
def lab(**given: str) -> Iterator[Lab]:
    """Start a server on an empty data directory."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), **given) as started:
        yield started


@contextmanager
def served(folder: Path, **given: str) -> Iterator[Lab]:
    """Start a server on a data directory, after migrating its database."""
    if given.get("DATABASE_URL"):
        command(folder, "migrate", "--verbosity", "0", **given)
    server = start_server(folder, **given)
    try:
        yield Lab(server, token(folder, **given), folder)
    finally:
        server.stop()


def token(folder: Path, **given: str) -> str:
    """Create a key for the team of the login address."""
    asked = ["token", "create", "--team", "local", "--json"]
    return str(json.loads(command(folder, *asked, **given))["token"])


def command(folder: Path, *arguments: str, **given: str) -> str:
    """Return the output of a `contextlab` command."""
    return _printed(["-m", "contextlab.cli", *arguments], environment(folder, **given))


def in_store(folder: Path, code: str, **given: str) -> str:
    """Return the output of Python lines that use the store of a data directory."""
    return _printed(["-c", "import django; django.setup()\n" + code], environment(folder, **given))


def environment(folder: Path, **given: str) -> dict[str, str]:
    """Return the environment of a process on a data directory, with SQLite and without Redis."""
    return {
        **{name: value for name, value in os.environ.items() if name != "REDIS_URL"},
        "PYTHONPATH": str(ROOT),
        "CONTEXTLAB_DATA_DIR": str(folder),
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "contextlab.settings",
        **given,
    }


def _printed(arguments: list[str], variables: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@contextmanager
def postgres() -> Iterator[tuple[str, int]]:
    """The URL of an empty database, dropped afterwards, and the server's process id; "" and 0
    where none answers. The id is 0 when it runs on another machine."""
    if on_postgres.why_not():
        yield "", 0
        return
    import psycopg

    name = f"contextlab_bench_{os.getpid()}"
    with psycopg.connect(on_postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        row = server.execute("SELECT pg_backend_pid()").fetchone()
        try:
            yield on_postgres.url().rpartition("/")[0] + f"/{name}", _parent(row[0] if row else 0)
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _parent(pid: int) -> int:
    """Return the postmaster's process id if it runs on this machine."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return 0
    return int(rest.split()[1]) if "postgres" in name else 0
