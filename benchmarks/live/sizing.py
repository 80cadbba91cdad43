"""What a day of many agents needs: cores, memory, disk, and what is exhausted first.

    CONTEXTLAB_CORPUS=~/.claude/projects python -m benchmarks.live.sizing

The deployment of compose.yaml, started by hand: two web servers behind Caddy with TLS, three
workers, PostgreSQL, Redis. Agents send the steps of recorded sessions, one request a step, as fast
as they are answered: a part of the day, compressed in time. The table scales what a step costs to
the day that is asked for. CPU that a step needs is counted until the last job has ended, PostgreSQL
included; what agents of this process use is not. The last quarter of the sessions shows whether
steps cost more as the store fills.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.live.deployment import Part, started
from benchmarks.live.steps import Step, sessions_of
from benchmarks.processes import cpu_seconds, machine, memory_mb, percentile, say
from benchmarks.server import postgres
from tests.faults.live_agent import audit_jobs
from tests.faults.store import Store

QUARTERS = 4
BUSY = 0.6
"""The share of a core's time that may be spent before answers wait for each other."""
MODEL = "claude-sonnet-4-5"


class Played(threading.Thread):
    """An agent that sends sessions; `waits` are milliseconds of its steps."""

    def __init__(self, lab: Any, named: list[tuple[str, list[Step]]]) -> None:
        super().__init__(daemon=True)
        self.lab, self.named = lab, named
        self.waits: list[float] = []
        self.failed: Counter[str] = Counter()

    def run(self) -> None:
        """One session after the other; a failed one is left."""
        for name, steps in self.named:
            try:
                self._play(name, steps)
            except Exception as error:  # noqa: BLE001 (any error: it is counted)
                self.failed[f"{type(error).__name__}: {error}"[:200]] += 1

    def _play(self, name: str, steps: list[Step]) -> None:
        self.lab.request("PUT", f"sessions/{name}", body={"model": MODEL})
        context, last = "", Step()
        for step in steps:
            body: dict[str, Any] = {"messages": [*filter(None, [last.answer]), *step.before]}
            if context:
                body["since"] = context
                if last.usage and last.answer:
                    body |= {"context_id": context, "usage": last.usage}
            begun = time.perf_counter()
            answer = self.lab.request("POST", f"sessions/{name}/steps", body=body)
            self.waits.append((time.perf_counter() - begun) * 1000)
            context, last = answer["context_id"], step


def main() -> None:
    """Start everything, play, scale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=48, help="sessions to play")
    parser.add_argument("--steps", type=int, default=200, help="at most, of a session")
    parser.add_argument("--agents", type=int, default=8, help="at once")
    parser.add_argument("--day", type=int, default=10_000, help="sessions of the day to scale to")
    parser.add_argument("--hours", type=float, default=8.0, help="in which that day happens")
    given = parser.parse_args()
    corpus = Path(os.environ["CONTEXTLAB_CORPUS"]).expanduser()
    sessions = [steps[: given.steps] for steps in sessions_of(corpus) if len(steps) >= given.steps]
    if not sessions:
        sys.exit(f"{corpus} has no session of {given.steps} steps.")
    with postgres() as (database, postmaster), tempfile.TemporaryDirectory() as folder:
        if not (database and shutil.which("caddy") and shutil.which("redis-server")):
            sys.exit("Needs PostgreSQL, Caddy and Redis.")
        parts = started(Path(folder), database)
        try:
            _play(parts, database, postmaster, sessions, given)
        finally:
            for part in parts:
                part.end()
            for part in parts:
                part.process.wait()


def _play(
    parts: list[Part],
    database: str,
    postmaster: int,
    sessions: list[list[Step]],
    given: argparse.Namespace,
) -> None:
    from contextlab.client import ContextLab

    labs = [ContextLab(timeout=60) for _ in range(given.agents)]
    names = [(f"day-{at}", sessions[at % len(sessions)]) for at in range(given.sessions)]
    empty, spent = _size(database), _spent(parts, postmaster)
    totals: Counter[str] = Counter()
    steps = wall = 0.0
    say(machine())
    say(f"{len(sessions)} different sessions; {given.agents} agents, as fast as they are answered")
    say(f"{'sessions':>9}{'steps/s':>9}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms a step':>15}")
    size = -(-len(names) // QUARTERS)
    for quarter in (names[at : at + size] for at in range(0, len(names), size)):
        begun = time.monotonic()
        agents = [Played(lab, list(quarter[at :: len(labs)])) for at, lab in enumerate(labs)]
        for agent in agents:
            agent.start()
        while any(agent.is_alive() for agent in agents):
            for part in parts:
                part.sample()
            time.sleep(1)
        took = time.monotonic() - begun
        audit_jobs(Store(database))
        after = _spent(parts, postmaster)
        used, spent = after - spent, after
        totals.update(used)
        waits = [wait for agent in agents for wait in agent.waits]
        steps, wall = steps + len(waits), wall + took
        say(
            f"{len(quarter):>9}{len(waits) / took:>9.1f}{percentile(waits, 0.5):>8.0f}"
            f"{percentile(waits, 0.95):>8.0f}{used.total() / len(waits):>15.1f}"
        )
        for why, times in sum((agent.failed for agent in agents), Counter[str]()).items():
            say(f"failed {times} times: {why}")
    _tell(parts, postmaster, totals, _size(database) - empty, steps, wall, given)


def _spent(parts: list[Part], postmaster: int) -> Counter[str]:
    """CPU so far in ms, by kind of process."""
    found: Counter[str] = Counter()
    for part in parts:
        part.sample()
        found[part.name] += round(part.spent * 1000)
    found["postgres"] = round(cpu_seconds(postmaster) * 1000) if postmaster else 0
    return found


def _size(database: str) -> int:
    import psycopg

    with psycopg.connect(database) as store:
        row = store.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def _tell(
    parts: list[Part],
    postmaster: int,
    totals: Counter[str],
    stored: int,
    steps: float,
    wall: float,
    given: argparse.Namespace,
) -> None:
    day = given.day * given.steps
    a_second = day / given.hours / 3600
    say(f"{steps:,.0f} steps in {wall:.0f} s; {stored / steps / 1024:.1f} KB a step in the store")
    day_is = f"{given.day:,} sessions of {given.steps} steps in {given.hours:g} h"
    say(f"{day_is}: {a_second:.0f} steps/s")
    say(f"{'':<10}{'CPU ms a step':>15}{'cores':>8}{'processes':>11}{'MB each':>9}")
    for name, spent in totals.most_common():
        cores = spent / steps / 1000 * a_second / BUSY
        sizes = [part.largest for part in parts if part.name == name]
        most = max(sizes or [memory_mb(postmaster)[1]])
        many = "" if name == "postgres" else f"{max(1, round(cores + 0.5))}"
        say(f"{name:<10}{spent / steps:>15.1f}{cores:>8.1f}{many:>11}{most:>9.0f}")
    bytes_a_day = stored / steps * day
    say(f"disk: {bytes_a_day / 1e9:.0f} GB a day, {bytes_a_day * 30 / 1e12:.2f} TB a month")


if __name__ == "__main__":
    main()
