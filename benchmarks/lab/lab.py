"""A simulation of a hundred real sessions, and how quick the server stays meanwhile.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.lab.lab

Imports the logs below the folder into a store of its own and simulates up to a hundred of their
sessions under new drafts: time until the first session is shown, and in total.
Meanwhile a page and an append are asked for again and again, and compared with the same at rest.
Then the same sessions are put under the same drafts by `contextlab simulate`, whose figures must
be those of the simulation.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.live.live import _signed_in
from benchmarks.processes import percentile, say
from benchmarks.server import Agent, Lab, command, in_store, served

SESSIONS = 100
ROUNDS = 3
ASKED_AT_REST = 60
PAUSE = 0.05
"""Seconds between two requests of one kind."""
LOOK_SECONDS = 0.5
NOT_COMPARED = {"id", "ms_per_step"}


def main() -> int:
    """Import, simulate, measure and compare; return 1 if figures differ."""
    corpus = os.environ.get("CONTEXTLAB_CORPUS")
    if not corpus:
        say("CONTEXTLAB_CORPUS names no folder of logs")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        found = json.loads(command(store, "import", corpus, "--json"))
        say(f"{found['sessions']} sessions imported")
        with served(store) as started:
            simulation = _measure(started)
        return _compare(store, simulation)


def draft(number: int, age: int) -> dict[str, Any]:
    """Build a new draft."""
    steps = [
        {"strategy": "offload", "parameters": {"age": age, "batch": 3 + number}},
        {"strategy": "compact", "parameters": {"trigger": 0.5}},
    ]
    return {"document": {"steps": steps}, "name": f"draft-{age}-{number}", "based_on": ""}


def _measure(started: Lab) -> dict[str, Any]:
    agent, cookie = started.agent(), _signed_in(started)
    agent.ask("PUT", "sessions/live", {"model": "claude-sonnet-4-5"})
    probes = {"GET /sessions/": _page(started, cookie), "append over REST": _append(started)}
    rest: dict[str, list[float]] = {name: [] for name in probes}
    for _ in range(ASKED_AT_REST):
        _probe(probes, rest)
    busy: dict[str, list[float]] = {name: [] for name in probes}
    for number in range(ROUNDS):
        answer = _simulate(agent, number, lambda: _probe(probes, busy))
    for name in probes:
        before, while_busy = (percentile(times[name], 0.95) for times in (rest, busy))
        half = percentile(rest[name], 0.5), percentile(busy[name], 0.5)
        say(
            f"{name:<18} p50 {half[0]:5.1f} ms at rest, {half[1]:5.1f} meanwhile; "
            f"p95 {before:5.1f}, {while_busy:5.1f} ({len(busy[name])} asked)"
        )
    return answer


def _simulate(agent: Agent, number: int, meanwhile: Callable[[], None]) -> dict[str, Any]:
    """Simulate three new drafts over the sessions."""
    made = [draft(number, age) for age in (3, 8)]
    for one in made:  # as versions they can be named
        body = {"sessions": {"by": "query", "limit": 1}, "draft": one}
        agent.ask("POST", "simulations", body)
    body = {
        "sessions": {"by": "query", "limit": SESSIONS},
        "draft": draft(number, 5),
        "others": [one["name"] for one in made],
    }
    began = time.perf_counter()
    path = f"simulations/{agent.ask('POST', 'simulations', body)['simulation']}"
    first = None
    while True:
        answer: dict[str, Any] = agent.ask("GET", path)
        if first is None and answer["done"]:
            first = time.perf_counter() - began
        if answer["state"] not in ("queued", "running"):
            break
        # As a page does once there is something to show: not again at once.
        again = time.perf_counter() + (LOOK_SECONDS if first else 0)
        while time.perf_counter() < again:
            meanwhile()
    whole = time.perf_counter() - began
    say(
        f"{answer['through']} sessions, {answer['versions'][0]['sums']['steps']:,} steps, three "
        f"drafts and the active policy: first session after {first or 0:.2f} s, "
        f"all after {whole:.1f} s"
    )
    return answer


def _page(started: Lab, cookie: str) -> Callable[[], None]:
    connection = http.client.HTTPConnection("127.0.0.1", started.server.port, timeout=60)

    def ask() -> None:
        connection.request("GET", "/sessions/", headers={"Cookie": cookie})
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"/sessions/: {response.status}")

    return ask


def _append(started: Lab) -> Callable[[], None]:
    agent = started.agent()

    def send() -> None:
        said = [{"role": "user", "content": "And what does the next file say?"}]
        agent.ask("POST", "sessions/live/messages", {"messages": said})

    return send


def _probe(probes: dict[str, Callable[[], None]], times: dict[str, list[float]]) -> None:
    for name, ask in probes.items():
        began = time.perf_counter()
        ask()
        times[name].append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE)


def _compare(store: Path, simulation: dict[str, Any]) -> int:
    """Count the sessions whose figures differ from those of the command."""
    code = (
        "import json\nfrom sessions.models import SimulationResult as R\n"
        f"rows = R.objects.filter(simulation={simulation['id']!r}, version__isnull=False)\n"
        "print(json.dumps([[str(r.version), r.session.external_id, r.figures] for r in "
        "rows.select_related('version__policy', 'session')]))"
    )
    by_version: dict[str, dict[str, Any]] = {}
    for version, session, figures in json.loads(in_store(store, code)):
        by_version.setdefault(version, {})[session] = figures
    differ = 0
    for version, rows in by_version.items():
        answer = json.loads(command(store, "simulate", "--json", "--policy", version, *rows))
        for row in answer["per_session"]:
            keys = row.keys() - NOT_COMPARED
            differ += any(row[key] != rows[row["id"]][key] for key in keys)
    say(f"{len(by_version)} policies by `contextlab simulate`: {differ} sessions differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
