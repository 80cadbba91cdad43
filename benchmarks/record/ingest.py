"""Messages of live agents, 1 KB each, over HTTP into `contextlab serve`.

    python -m benchmarks.record.ingest
    python -m benchmarks.record.ingest --profile      # the append alone, in one process, profiled

A `contextlab serve` of its own, one connection with a key. A batch counts once it is answered:
then it is committed (fsync: synchronous=FULL on SQLite), counted (o200k) and queryable. Messages
per CPU-second: of the server; of server and job processes, until the policy has been applied and
the session is measured; on PostgreSQL also with the whole cluster's time, an upper bound when
others use it too. PostgreSQL: CONTEXTLAB_TEST_POSTGRES, or one on this machine.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
from benchmarks.figures import figure  # noqa: E402
from benchmarks.processes import cpu_seconds, percentile, say  # noqa: E402
from benchmarks.server import Agent, Lab, lab, postgres  # noqa: E402

BATCH = 100
BATCHES = 40
SINGLES = 400
"""A whole number of batches: what goes to peers is cut from the same."""
LENGTH = 1_000
STORED = 10_000
"""Messages that a session has before the second measurement."""


def main() -> None:
    """Measure empty and long sessions, batches and single messages on every store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="where the time of appends goes")
    if parser.parse_args().profile:
        _profile()
        return
    say("messages per CPU-second")
    say(
        f"{'store':<11}{'session has':>12}{'a request':>10}{'of server':>11}{'with jobs':>11}"
        f"{'with store':>11}{'a second':>10}{'p50 ms':>8}{'p95 ms':>8}"
    )
    with lab() as started:
        _measure("SQLite", started, 0)
    with postgres() as (url, postmaster):
        if not url:
            say("PostgreSQL does not answer: left out")
            return
        with lab(DATABASE_URL=url) as started:
            _measure("PostgreSQL", started, postmaster)


def _measure(store: str, started: Lab, postmaster: int) -> None:
    agent = started.agent()
    _deliver(started, agent, "warm", bodies(0, 5))
    for stored in (0, STORED):
        name = f"run-{stored}"
        agent.ask("PUT", f"sessions/{name}", {"model": "claude-sonnet-4-5"})
        _deliver(started, agent, name, bodies(stored, stored // BATCH))
        for size, given in (
            (BATCH, bodies(stored + STORED, BATCHES)),
            (1, bodies(stored + 2 * STORED, SINGLES, 1)),
        ):
            sent = size * len(given)
            clocks = [_own(started.pid), started.cpu(), cpu_seconds(postmaster or os.getpid())]
            wall = time.perf_counter()
            job, latencies = _send(agent, name, given)
            wall, own = time.perf_counter() - wall, _own(started.pid) - clocks[0]
            started.settle(job)
            all_cpu = started.cpu() - clocks[1]
            with_store = all_cpu + cpu_seconds(postmaster) - clocks[2] if postmaster else all_cpu
            say(
                f"{store:<11}{stored:>12,}{size:>10}{sent / own:>11,.0f}{sent / all_cpu:>11,.0f}"
                f"{sent / with_store:>11,.0f}{sent / wall:>10,.0f}"
                f"{percentile(latencies, 0.5):>8.1f}{percentile(latencies, 0.95):>8.1f}"
            )
            if store == "SQLite":
                _state(stored, size, own / sent * 1000, all_cpu / sent * 1000)
        count = agent.ask("GET", f"sessions/{name}")["messages"]
        assert count == stored + BATCH * BATCHES + SINGLES, count


def _state(stored: int, size: int, own: float, settled: float) -> None:
    """Say the figures of docs/speed.md; `own` and `settled` are ms of CPU per message."""
    what = f"session of {stored:,} messages"
    if size == 1:
        figure(f"single append, {what}: server CPU, ms", own, at_most=5)
        figure(f"single append, {what}: CPU with jobs, ms", settled, at_most=12)
    else:
        figure(f"batches of 100, {what}: messages per server CPU-second", 1000 / own, at_least=5000)
        settles = f"batches of 100, {what}: messages per CPU-second, settled"
        figure(settles, 1000 / settled, at_least=3000)


def _own(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _deliver(started: Lab, agent: Agent, name: str, given: list[bytes]) -> None:
    job, _ = _send(agent, name, given)
    started.settle(job)


def _send(agent: Agent, name: str, given: list[bytes]) -> tuple[str | None, list[float]]:
    """Return the job of the last append, and the latencies in ms."""
    job, latencies = None, []
    for body in given:
        begun = time.perf_counter()
        answer = agent.send("POST", f"sessions/{name}/messages", body)
        latencies.append((time.perf_counter() - begun) * 1000)
        job = json.loads(answer)["job"]
    return job, latencies


def bodies(first: int, batches: int, size: int = BATCH) -> list[bytes]:
    """Build requests with alternating tool calls and results from this project's own source."""
    text = "".join(path.read_text() for path in sorted((ROOT / "compaction").rglob("*.py")))
    return [
        json.dumps({"messages": [message(first + batch * size + n, text) for n in range(size)]})
        .encode()
        for batch in range(batches)
    ]  # fmt: skip


def message(number: int, text: str) -> dict[str, Any]:
    """Build a message of 1 KB: even numbers call a tool, odd ones answer it."""
    pair = number // 2 * 2
    at = pair * 977 % (len(text) - 2 * LENGTH)
    if number % 2 == 0:
        given = {"path": f"f{pair}.py", "content": text[at : at + LENGTH - 150]}
        call = {"type": "tool_use", "id": f"toolu_{pair}", "name": "Write", "input": given}
        return {"role": "assistant", "content": [call]}
    said = f"{pair} {text[at + LENGTH : at + 2 * LENGTH - 130]}"
    result = {"type": "tool_result", "tool_use_id": f"toolu_{pair}", "content": said}
    return {"role": "user", "content": [result]}


def _profile() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": ""}
        os.environ["DJANGO_SETTINGS_MODULE"] = "contextlab.settings"
        import django

        django.setup()
        from django.core.management import call_command

        from sessions.actions.accounts.teams import local_team
        from sessions.actions.live.deliver import deliver, delivery
        from sessions.actions.live.live_sessions import SessionFields, put_session
        from sessions.importers.decoded import exact

        call_command("migrate", verbosity=0)
        session = put_session(local_team(), "run", SessionFields(model="claude-sonnet-4-5"))[0]
        deliver(session, delivery(exact(bodies(0, 1)[0])))
        given = bodies(STORED, BATCHES)
        with cProfile.Profile() as profile:
            for body in given:
                deliver(session, delivery(exact(body)))
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
