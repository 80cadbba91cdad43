"""Two hundred agents at the deployment of compose.yaml, while each of its processes is killed.

    python -m benchmarks.live.deployment --minutes 10 --agents 200

Two web servers behind Caddy with TLS, three workers, PostgreSQL, Redis, started by hand. Each agent
takes a step every `--pace` seconds: its context, the answer, the tool's result. Every web server,
every worker and Redis is killed once with -9, and started again after a second. Then every message
that was acknowledged is compared with what is stored. Needs Caddy, Redis and PostgreSQL.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.processes import cpu_seconds, machine, memory_mb, percentile, say
from benchmarks.server import ROOT, command, postgres, token
from tests.conftest import free_port, wait_until

RESTART_SECONDS = 1.0
"""How long a process that was killed stays away, as with `Restart=always` of the units."""


class Part:
    """A process that is started again whenever it ends."""

    def __init__(self, name: str, run: list[str], environment: dict[str, str], log: Path) -> None:
        self.name, self.run, self.environment, self.log = name, run, environment, log
        self.spent, self.largest = 0.0, 0.0
        self.ending = False
        self._start()
        threading.Thread(target=self._keep, daemon=True).start()

    def _start(self) -> None:
        self._seen = 0.0
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.run, env={**os.environ, **self.environment}, stdout=log, stderr=log
            )

    def _keep(self) -> None:
        while True:
            self.process.wait()
            time.sleep(RESTART_SECONDS)
            if self.ending:
                return
            self._start()

    def sample(self) -> None:
        """Add up CPU seconds, and note the largest memory in MB (PSS)."""
        seen = cpu_seconds(self.process.pid)
        self.spent += max(seen - self._seen, 0.0)
        self._seen = max(seen, self._seen)
        self.largest = max(self.largest, memory_mb(self.process.pid)[1])

    def kill(self) -> None:
        """Kill with -9."""
        self.process.kill()

    def end(self) -> None:
        """Stop for good."""
        self.ending = True
        self.process.terminate()


class Played(threading.Thread):
    """An agent with its ledger; `waits` are milliseconds by request, retries included."""

    def __init__(self, lab: Any, name: str, folder: Path, pace: float, until: float) -> None:
        from tests.agent import MODEL, Agent, Ledger

        super().__init__(name=name, daemon=True)
        self.lab, self.pace, self.until = lab, pace, until
        self.waits: dict[str, list[float]] = {"context": [], "append": []}
        self.errors: Counter[str] = Counter()
        self.failed = ""
        lab._http.request = self._counted(lab._http.request)
        session = lab.session(name, agent="mender", model=MODEL, policy="offload-first")
        session.context = self._timed("context", session.context)
        session.append = self._timed("append", session.append)
        self.ledger = Ledger(folder / f"{name}.ledger")
        self.agent = Agent(session, self.ledger)

    def run(self) -> None:
        """Step after step until the time is over."""
        time.sleep(random.uniform(0, self.pace))
        try:
            self.agent.begin()
            while time.monotonic() < self.until:
                due = time.monotonic() + self.pace
                self.agent.step()
                time.sleep(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001 (any error: it is what is measured)
            self.failed = f"{type(error).__name__}: {error}"

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*given: Any, **more: Any) -> Any:
            try:
                answer = ask(*given, **more)
            except Exception as error:
                self.errors[type(error).__name__] += 1
                raise
            if answer.status_code >= 400:
                self.errors[f"{answer.status_code} {_said(answer)}".strip()] += 1
            return answer

        return asked

    def _timed(self, what: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*given: Any, **more: Any) -> Any:
            begun = time.perf_counter()
            answer = ask(*given, **more)
            self.waits[what].append((time.perf_counter() - begun) * 1000)
            return answer

        return asked

    def compare(self) -> tuple[int, int]:
        """Messages acknowledged, and how many of them are not stored exactly once in their place,
        or are stored and were never sent."""
        from tests.agent import digest

        stored: dict[int, str] = {}
        seen, after = 0, 0
        while after is not None:
            query = {"after": after, "limit": 500}
            address = f"sessions/{self.agent.session.id}/messages"
            page = self.lab.request("GET", address, query=query)
            seen += len(page["messages"])
            stored |= {one["seq"]: digest(one) for one in page["messages"]}
            after = page["next"]
        acknowledged = self.ledger.entries()
        wrong = sum(stored.get(seq) != said for seq, said in acknowledged.items())
        first = min(acknowledged, default=1)  # tools and system come before
        extra = sum(seq >= first and seq not in acknowledged for seq in stored)
        return len(acknowledged), wrong + extra + abs(seen - len(stored))


def _said(answer: Any) -> str:
    """What a problem says; nothing where the proxy answered."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError):
        return ""


def main() -> None:
    """Start everything, play, kill, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--pace", type=float, default=15.0, help="seconds a step")
    given = parser.parse_args()
    with postgres() as (database, _), tempfile.TemporaryDirectory() as folder:
        if not (database and shutil.which("caddy") and shutil.which("redis-server")):
            sys.exit("Needs PostgreSQL, Caddy and Redis.")
        say(machine())
        parts = started(Path(folder), database)
        try:
            _play(parts, Path(folder), database, given)
        finally:
            for part in parts:
                part.end()
            for part in parts:
                part.process.wait()


def started(folder: Path, database: str) -> list[Part]:
    """The processes of compose.yaml, ready to answer at https://localhost:`site`."""
    redis, ports, site = free_port(), (free_port(), free_port()), free_port()
    common = {
        "PYTHONPATH": str(ROOT),
        "CONTEXTLAB_DATA_DIR": str(folder),
        "DATABASE_URL": database,
        "REDIS_URL": f"redis://127.0.0.1:{redis}/0",
        "CONTEXTLAB_ORIGINS": f"https://localhost:{site}",
        "CONTEXTLAB_BEHIND_TLS_PROXY": "1",
    }
    command(folder, "migrate", "--verbosity", "0", **common)
    cli = [sys.executable, "-m", "contextlab.cli"]
    pooled = {**common, "CONTEXTLAB_DATABASE_POOL": "20"}
    store = ["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""]
    front = ["caddy", "run", "--config", str(ROOT / "deploy/Caddyfile"), "--adapter", "caddyfile"]
    proxied = {
        "XDG_DATA_HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "CONTEXTLAB_SITE": f"https://localhost:{site}",
        "CONTEXTLAB_HTTP_PORT": str(free_port()),
        "CONTEXTLAB_WEB_SERVERS": "to " + " ".join(f"127.0.0.1:{port}" for port in ports),
    }
    log = folder / "parts.log"
    parts = [Part("redis", store, {}, log)]
    parts += [Part("web", [*cli, "serve", "--port", str(at)], pooled, log) for at in ports]
    parts += [Part("worker", [*cli, "worker"], common, log) for _ in range(3)]
    parts += [Part("caddy", front, proxied, log)]
    authority = folder / "caddy/pki/authorities/local/root.crt"
    wait_until(authority.exists)
    os.environ["SSL_CERT_FILE"] = str(authority)
    os.environ |= {"CONTEXTLAB_URL": f"https://localhost:{site}"}
    os.environ["CONTEXTLAB_TOKEN"] = token(folder, **common)
    return parts


def _play(parts: list[Part], folder: Path, database: str, given: argparse.Namespace) -> None:
    from contextlab.client import ContextLab

    begun = time.monotonic()
    seconds = given.minutes * 60
    labs = [ContextLab(timeout=30) for _ in range(given.agents)]
    agents = [
        Played(lab, f"fleet-{number}", folder, given.pace, begun + seconds)
        for number, lab in enumerate(labs)
    ]
    for agent in agents:
        agent.start()
    mortal = [part for part in parts if part.name != "caddy"]
    deaths = {(at + 1) / (len(mortal) + 1) * seconds: part for at, part in enumerate(mortal)}
    while any(agent.is_alive() for agent in agents):
        for part in parts:
            part.sample()
        for at in [at for at in deaths if time.monotonic() - begun > at]:
            dying = deaths.pop(at)
            say(f"{time.monotonic() - begun:5.0f} s: kill -9 {dying.name} {dying.process.pid}")
            dying.kill()
        time.sleep(1)
    wall = time.monotonic() - begun
    _tell(agents, parts, wall)
    settled = _settled(database)
    compared = [agent.compare() for agent in agents]
    said = sum(count for count, _ in compared)
    say(f"{said:,} messages acknowledged; jobs settled after {settled:.0f} s")
    figure(
        "200 agents, each process killed: messages missing, twice or changed",
        sum(wrong for _, wrong in compared),
        at_most=0,
    )
    figure("200 agents: agents that gave up", sum(bool(one.failed) for one in agents), at_most=0)


def _tell(agents: list[Played], parts: list[Part], wall: float) -> None:
    for what in ("context", "append"):
        waits = [each for agent in agents for each in agent.waits[what]]
        p50, p95, p99 = (percentile(waits, share) for share in (0.5, 0.95, 0.99))
        line = f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms, worst {max(waits):.0f} ms"
        say(f"{what}: {len(waits):,}, {line} (retries included)")
    errors = sum((agent.errors for agent in agents), Counter[str]())
    say(f"errors seen and retried: {dict(errors) or 'none'}")
    for why in sorted({agent.failed for agent in agents if agent.failed}):
        say(f"gave up: {why}")
    for name in dict.fromkeys(part.name for part in parts):
        same = [part for part in parts if part.name == name]
        spent, most = sum(part.spent for part in same), max(part.largest for part in same)
        say(f"{len(same)} × {name}: {spent / wall:.2f} cores in all, at most {most:.0f} MB each")
    steps = sum(agent.agent.done for agent in agents)
    spent = sum(part.spent for part in parts if part.name in ("web", "worker"))
    say(f"{steps:,} steps in {wall:.0f} s, {spent / max(steps, 1) * 1000:.0f} ms CPU a step")
    say(machine())


def _settled(database: str) -> float:
    """Wait until no job is queued or runs; seconds."""
    from tests.faults.live_agent import audit_jobs
    from tests.faults.store import Store

    begun = time.monotonic()
    store = Store(database)
    audit_jobs(store)
    store.audit()
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
