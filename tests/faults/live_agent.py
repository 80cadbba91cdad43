"""A scripted agent in a thread, a page that watches it, and audits of both."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contextlab.client import ContextLab
from tests import preloaded, provider_rules
from tests.agent import MODEL, Agent, Ledger, digest
from tests.conftest import ROOT, Server, wait_until
from tests.faults.store import Store

STEPS = int(os.environ.get("CONTEXTLAB_FAULT_STEPS", "30"))
PACE = float(os.environ.get("CONTEXTLAB_FAULT_PACE", "0"))
"""Steps a second at most; 0 is as fast as the server answers."""


def new_token(data_dir: Path, **environment: str) -> str:
    """A key of the team that the login address leads to."""
    made = preloaded.run(
        ["-m", "contextlab.cli", "token", "create", "--team", "local", "--json"],
        env={
            **{name: value for name, value in os.environ.items() if name != "REDIS_URL"},
            "PYTHONPATH": str(ROOT),
            "CONTEXTLAB_DATA_DIR": str(data_dir),
            "DATABASE_URL": "",
            **environment,
        },
    )
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["token"])


class Work(threading.Thread):
    """A whole session of a scripted agent, a step after the other, whatever happens meanwhile."""

    def __init__(self, address: str, token: str, name: str, folder: Path) -> None:
        super().__init__(name=name, daemon=True)
        self.lab = ContextLab(address, token)
        self.session = self.lab.session(name, agent="mender", model=MODEL, policy="offload-first")
        self.ledger = Ledger(folder / f"{name}.ledger")
        self.agent = Agent(self.session, self.ledger)
        self.agent.begin()
        self.error: BaseException | None = None

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.lab.close()
        self.ledger.close()

    def run(self) -> None:
        """All steps; an error is kept for `reached`."""
        began = time.monotonic()
        try:
            for number in range(1, STEPS + 1):
                self.agent.step()
                if PACE:
                    time.sleep(max(0.0, began + number / PACE - time.monotonic()))
        except Exception as error:  # noqa: BLE001
            self.error = error

    def reached(self, share: float) -> None:
        """Wait until that share of the session is stored (0…1)."""
        wait_until(lambda: self.error or self.agent.done >= STEPS * share, seconds=600)
        if self.error:
            raise self.error

    def explain(self, store: Store) -> str:
        """Describe the managed contexts in the store, for failure messages."""
        names = [context.id for context in self.agent.contexts[-5:]]
        listed = ", ".join(f"'{name}'" for name in names) or "''"
        rows = store.rows(
            "SELECT c.id, c.step, r.origin, r.session_id FROM agent_sessions_managedcontext c"
            f" LEFT JOIN agent_sessions_run r ON r.id = c.run_id WHERE c.id IN ({listed})"
        )
        whole = store.rows("PRAGMA integrity_check") if isinstance(store.where, Path) else ""
        return f"handed out {names}; stored {rows}; session {self.session.id}; database {whole}"

    def ended(self) -> None:
        """Returns when the last step is stored."""
        self.reached(1)
        self.join()

    def audit(self, store: Store) -> None:
        """Check the invariants of the session once its last step is stored."""
        self._audit_messages()
        self._audit_contexts()
        audit_jobs(store)
        store.audit()
        where = f"WHERE id = '{self.session.id.replace('-', '')}'"
        if not isinstance(store.where, Path):
            where = f"WHERE id = '{self.session.id}'"
        sql = f"SELECT measured, step_count FROM agent_sessions_session {where}"
        assert [tuple(map(int, row)) for row in store.rows(sql)] == [(1, STEPS)]

    def _audit_messages(self) -> None:
        """Every acknowledged message is stored once in its place, and nothing else."""
        answer: list[dict[str, Any]] = []
        after: int | None = 0
        address = f"sessions/{self.session.id}/messages"
        while after is not None:
            page = self.lab.request("GET", address, query={"after": after, "limit": 500})
            answer += page["messages"]
            after = page["next"]
        assert [message["seq"] for message in answer] == list(range(1, len(answer) + 1))
        stored = {message["seq"]: digest(message) for message in answer if message["seq"] > 2}
        assert stored == self.ledger.entries()
        assert len(stored) == 2 * STEPS + 1

    def _audit_contexts(self) -> None:
        """Every managed context is valid and reproducible byte by byte."""
        assert len(self.agent.contexts) == STEPS
        for context in self.agent.contexts:
            query = {"context_id": context.id}
            again = self.lab.request("GET", f"sessions/{self.session.id}/context", query=query)
            assert _bytes(again) == _bytes(context.raw), context.step
            body = {"max_tokens": 1, **context.request}
            assert provider_rules.anthropic(body) == [], context.step

    @property
    def handed_out(self) -> list[bytes]:
        """The context of each step, equal for all such agents, whatever failed."""
        return [_bytes(context.raw) for context in self.agent.contexts]


SAME = ("step", "revision", "seq", "tokens", "system", "tools", "messages")


def _bytes(context: Mapping[str, Any]) -> bytes:
    return json.dumps([context[name] for name in SAME]).encode()


def audit_jobs(store: Store) -> None:
    """Every job ends, and well; one that tends a session leaves no row."""
    unfinished = "SELECT kind FROM agent_sessions_job WHERE state IN ('queued', 'running')"
    wait_until(lambda: not store.rows(unfinished), seconds=180)
    # Not everything but 'done': another job may have been asked for since.
    ended = "('done', 'queued', 'running')"
    failed = store.rows(
        f"SELECT kind, state, CAST(problem AS text) FROM agent_sessions_job"
        f" WHERE state NOT IN {ended}"
    )
    assert failed == [], failed


NOTE_STEPS = """() => {
  window.shown = [];
  const note = () => {
    const step = Number(document.querySelector('.goto input')?.value);
    if (step && step !== window.shown.at(-1)?.[0]) window.shown.push([step, Date.now()]);
  };
  setInterval(note, 20);
}"""


class Watched:
    """A replay in Chromium that follows a session, and never reloads."""

    def __init__(self, page: Any, work: Work) -> None:
        self.page, self.work = page, work
        page.goto(f"/sessions/{work.session.id}/")
        page.locator("[role=slider]").wait_for()
        page.evaluate(NOTE_STEPS)
        page.locator("[data-live-pill][data-state=live]").wait_for()

    def catches_up(self) -> None:
        """Wait until the page shows the newest step, is live, and equals a new page."""
        last = str(STEPS + 1)
        self.page.wait_for_function(
            "last => document.querySelector('.goto input')?.value === last", arg=last
        )
        self.page.locator("[data-live-pill][data-state=live]").wait_for()
        assert self.page.locator(".follow").get_attribute("aria-pressed") == "true"
        fresh = self.page.context.new_page()
        fresh.goto(f"/sessions/{self.work.session.id}/")
        fresh.locator("[role=slider]").wait_for()
        try:
            alike(self.page, fresh)
        finally:
            fresh.close()

    def tell(self, fault: str) -> None:
        """Prints how long the page was behind, for `make faults`: a figure, not a limit."""
        stored = self.work.agent.stored
        took = stored[STEPS] - stored[1]
        behind = f"page behind for {self._longest():.1f} s at most"
        print(f"\n{fault}: {STEPS} steps in {took:.0f} s, {behind}")  # noqa: T201

    def _longest(self) -> float:
        """Longest time in seconds from a step's acknowledgement until the page showed it."""
        shown = self.page.evaluate("window.shown")
        worst = 0.0
        for step, stored in self.work.agent.stored.items():
            at = min((ms for number, ms in shown if number > step), default=None)
            worst = max(worst, time.time() - stored if at is None else at / 1000 - stored)
        return worst


WHAT_IT_SAYS = """() => {
  const main = document.querySelector('main').cloneNode(true);
  const apart = 'script, noscript, [role=grid], .news, [aria-live], time';
  for (const part of main.querySelectorAll(apart)) part.remove();
  const rows = document.querySelectorAll('[role=grid] .line');
  return [main.textContent.replace(/\\s+/g, ' '), rows[rows.length - 1]?.textContent];
}"""
"""A replay's figures, buttons and last message; not the news, which only a page has that stayed."""


def alike(one: Any, other: Any) -> None:
    """Wait until two pages show the same."""
    try:
        wait_until(lambda: one.evaluate(WHAT_IT_SAYS) == other.evaluate(WHAT_IT_SAYS))
    except AssertionError:
        assert one.evaluate(WHAT_IT_SAYS) == other.evaluate(WHAT_IT_SAYS)
        raise


@contextmanager
def watching(browser: Any, server: Server, work: Work) -> Iterator[Watched]:
    """A signed-in page on the agent's replay. Console errors are not checked, because a lost
    connection causes them."""
    context = browser.new_context(base_url=server.address)
    server.let_in(context)
    page = context.new_page()
    page.set_default_timeout(90_000)
    yield Watched(page, work)
    context.close()
