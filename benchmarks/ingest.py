"""Messages of live agents, 1 KB each in batches of 100, until committed, counted and queryable.

    python -m benchmarks.ingest
    python -m benchmarks.ingest --profile

From the bytes of the request's body to the commit (fsync: synchronous=FULL on SQLite), hashing,
o200k counting and compression included; HTTP is not. Messages per CPU-second of the process that
serves; of PostgreSQL's own processes nothing is counted. Runs on SQLite, and on PostgreSQL where
CONTEXTLAB_TEST_POSTGRES, or one on this machine, answers.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BATCH = 100
BATCHES = 40
LENGTH = 1_000
STORED = 10_000
"""Messages that a session has before the second measurement."""


def main() -> None:
    """Measure in a process of its own for each database."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="where the time goes, on SQLite")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        _here(asked.profile)
        return
    print(
        f"{'store':<12} {'session has':>12} {'a CPU-second':>13} {'a second':>9}  (to reach: 3,000)"
    )
    with tempfile.TemporaryDirectory() as folder:
        _apart({"CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": ""}, asked.profile)
    if asked.profile:
        return
    with tempfile.TemporaryDirectory() as folder, _postgres() as url:
        if url:
            _apart({"CONTEXTLAB_DATA_DIR": folder, "DATABASE_URL": url}, False)


def _apart(environment: dict[str, str], profile: bool) -> None:
    sys.stdout.flush()
    subprocess.run(
        [sys.executable, "-m", "benchmarks.ingest", "--here", *(["--profile"] * profile)],
        env={**os.environ, **environment, "DJANGO_SETTINGS_MODULE": "contextlab.settings"},
        cwd=Path(__file__).resolve().parent.parent,
        check=True,
    )


@contextmanager
def _postgres() -> Iterator[str]:
    """The URL of an empty database, dropped afterwards; empty where no server answers."""
    from tests import on_postgres

    if missing := on_postgres.why_not():
        print(f"PostgreSQL was left out: {missing}")
        yield ""
        return
    import psycopg

    name = f"contextlab_ingest_{os.getpid()}"
    with psycopg.connect(on_postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield on_postgres.url().rpartition("/")[0] + f"/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _here(profile: bool) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from sessions.actions.live_sessions import SessionFields, put_session
    from sessions.actions.teams import local_team

    call_command("migrate", verbosity=0)
    fields = SessionFields(model="claude-sonnet-4-5")
    _deliver(put_session(local_team(), "warm", fields)[0], _bodies(0, 1))
    for stored in (0, STORED):
        session = put_session(local_team(), f"run-{stored}", fields)[0]
        _deliver(session, _bodies(stored, stored // BATCH))
        bodies = _bodies(stored + STORED, BATCHES)
        with _profiled(profile):
            cpu, wall = time.process_time(), time.perf_counter()
            _deliver(session, bodies)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        count = session.messages.count()
        assert count == stored + BATCH * BATCHES, count
        sent = BATCH * BATCHES
        print(
            f"{connection.vendor:<12} {stored:>12,} {sent / cpu:>13,.0f} {sent / wall:>9,.0f}",
            flush=True,
        )


@contextmanager
def _profiled(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    with cProfile.Profile() as profile:
        yield
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def _deliver(session: Any, bodies: list[bytes]) -> None:
    from sessions.actions.deliver import deliver, delivery
    from sessions.importers.decoded import exact

    for body in bodies:
        deliver(session, delivery(exact(body)))


def _bodies(first: int, batches: int) -> list[bytes]:
    """Steps of one tool call and its result; the text is this project's own source."""
    root = Path(__file__).resolve().parent.parent
    text = "".join(path.read_text() for path in sorted((root / "compaction").glob("*.py")))
    made = []
    for batch in range(batches):
        messages: list[dict[str, Any]] = []
        for pair in range(BATCH // 2):
            number = first + batch * BATCH + pair * 2
            at = number * 977 % (len(text) - 2 * LENGTH)
            call = {
                "type": "tool_use",
                "id": f"toolu_{number}",
                "name": "Write",
                "input": {"path": f"f{number}.py", "content": text[at : at + LENGTH - 150]},
            }
            result = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{number}",
                "content": f"{number} {text[at + LENGTH : at + 2 * LENGTH - 130]}",
            }
            messages.append({"role": "assistant", "content": [call]})
            messages.append({"role": "user", "content": [result]})
        made.append(json.dumps({"messages": messages}).encode())
    return made


if __name__ == "__main__":
    main()
