"""Every page of the navigation and every list of the API at 200,000 sessions, as a server answers.

    CONTEXTLAB_BENCH_POSTGRES=postgres://… python -m benchmarks answers

`contextlab serve` on the store of `benchmarks.dashboard.lists`. CPU of the server's processes and
of its PostgreSQL backends, without parallel workers, and the time to the answer: medians of 20
answers after three to warm up, one after the other. CONTEXTLAB_BENCH_STORE names a filled database,
which is kept.
"""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks.dashboard import lists
from benchmarks.dashboard.lists import SESSIONS
from benchmarks.figures import figure
from benchmarks.processes import ran_seconds, say, tree
from benchmarks.server import Lab, served
from tests.server import SESSION

WARM, ANSWERS = 3, 20
STORE = os.environ.get("CONTEXTLAB_BENCH_STORE", "")

OTHERS = {
    **{f"dashboard {name}": f"/dashboard/?range={name}" for name in ("24h", "30d", "all")},
    "sessions of a policy": "/sessions/?policy=balanced",
    "sessions compacted": "/sessions/?flag=compacted",
    "sessions with recall": "/sessions/?counted=recall",
    "search, two words": "/search/?q=session+words",
    "cache all": "/cache/?range=all",
    "tools all": "/tools/?range=all",
    "policy": "/policies/balanced/",
    "policy, edit": "/policies/balanced/edit/",
    "rules of reviews": "/review/rules/",
    "account": "/account/",
}
"""Pages beside those that the routes name, or of other ranges."""

LISTS = (
    "sessions?limit=50", "sessions?q=Session+77", "policies", "rollouts", "reviews",
    "search?q=session", "simulations", "erasures", "holds", "notifications", "budgets", "approvals",
    "ingestion", "ingestion/refused", "keys", "dashboard", "dashboard?range=30d", "memory",
    "subscriptions", "masking", "retention", "archiving",
)  # fmt: skip


class Costs(NamedTuple):
    """Medians for an answer, ms: CPU of server and PostgreSQL, and the time until it is there."""

    server: float
    postgres: float
    waited: float


@contextmanager
def store() -> Iterator[str]:
    """The address of a filled database, with Django set up for it."""
    if STORE:
        lists.set_up(STORE)
        yield STORE
        return
    with lists.database() as address:
        lists.set_up(address)
        lists.keep_many()
        yield address


def addresses() -> dict[str, str]:
    """Every page without parameters, by its name, and the other ones."""
    from sessions.views.web.pages import pages

    named = {
        page.name: f"/{page.route}" for page in pages() if "<" not in page.route and not page.public
    }
    return {**named, **OTHERS, **{f"API {path}": f"/api/v1/{path}" for path in LISTS}}


class Asking:
    """Asks a server, and reads what it and its backends have run before and after."""

    def __init__(self, running: Lab, database: psycopg.Connection[Any]) -> None:
        self.pid, self.database = running.pid, database
        self.connection = http.client.HTTPConnection("127.0.0.1", running.server.port, timeout=120)
        self.page = {"Cookie": f"{SESSION}={running.server.cookie}"}
        self.api = {"Authorization": f"Bearer {running.token}"}

    def costs(self, path: str) -> Costs | None:
        """The costs of an answer; None if there is no such page, or it leads to another."""
        found = []
        for _ in range(WARM + ANSWERS):
            before, begun = self._ran(), time.perf_counter()
            if (status := self._answer(path)) != 200:
                say(f"{path}: left out, {status}")
                return None
            took = time.perf_counter() - begun
            server, postgres = (
                after - before for after, before in zip(self._ran(), before, strict=True)
            )
            found.append((server, postgres, took))
        rows = zip(*found[WARM:], strict=True)
        return Costs(*(1000 * statistics.median(row) for row in rows))

    def _answer(self, path: str) -> int:
        headers = self.api if path.startswith("/api/") else self.page
        self.connection.request("GET", path, headers={**headers, "Accept-Encoding": "gzip"})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status >= 500:
            raise RuntimeError(f"{path}: {answer.status}")
        return answer.status

    def _ran(self) -> tuple[float, float]:
        backends = self.database.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return ran_seconds(tree(self.pid)), ran_seconds(row[0] for row in backends)


def main() -> None:
    """Serve the store and ask for each page, or for those whose names hold an argument."""
    with (
        store() as address,
        tempfile.TemporaryDirectory() as folder,
        psycopg.connect(address, autocommit=True) as database,
    ):
        named = database.info.dbname
        database.execute(f"ALTER DATABASE {named} SET max_parallel_workers_per_gather = 0")
        with served(Path(folder), DATABASE_URL=address) as running:
            asking = Asking(running, database)
            say("a page: CPU ms (server + PostgreSQL), ms to the answer")
            for name, path in addresses().items():
                if not sys.argv[1:] or any(one in name for one in sys.argv[1:]):
                    _say(name, asking.costs(path))


def _say(name: str, found: Costs | None) -> None:
    if found is None:
        return
    cpu = found.server + found.postgres
    parts = f"({found.server:.0f} + {found.postgres:.0f})"
    say(f"{name:32} {cpu:6.0f} {parts:12} {found.waited:6.0f}")
    figure(f"answer, {name}, {SESSIONS:,} sessions: CPU, ms", cpu, at_most=100)


if __name__ == "__main__":
    main()
