"""Opening a session of 10,000 messages of real logs, and a diff in it, through the real server.

    CONTEXTLAB_CORPUS=~/.claude/projects python -m benchmarks opening

Every request of the page and its scripts except static files, with gzip, as a browser sends them:
the page, its manifest and the previews in view; the page of a diff and its rows. CPU of the server,
with its job processes, which have ended their work by then. Two sessions of the same messages: one
recorded, one whose contexts we manage.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.live.steps import _steps
from benchmarks.processes import say
from benchmarks.server import Agent, Lab, lab
from contextlab.settings import SESSION_COOKIE_NAME

MESSAGES, AT_ONCE, ROUNDS = 10_000, 100, 20
TOKENS, APART = 250_000, 20
"""Of the context that is compared, and steps between the two contexts."""

IN_VIEW = 200
WINDOW = 1_000_000


def main() -> None:
    """Fill a store and open what is in it."""
    messages = list(islice(_messages(Path(os.environ["CONTEXTLAB_CORPUS"]).expanduser()), MESSAGES))
    with lab() as started:
        agent = started.agent()
        browser = Browser(started)
        shown = {name: _filled(started, agent, name, messages) for name in ("recorded", "managed")}
        for name, session in shown.items():
            _opened(browser, name, session)
        step = _step_with(browser, shown["recorded"])
        _compared(browser, "a recorded session", shown["recorded"], step, "recorded")
        _compared(browser, "a managed session", shown["managed"], step, "managed")
        _compared(browser, "two runs", shown["managed"], step, "recorded", "managed")


def _messages(folder: Path) -> Iterator[dict[str, Any]]:
    """What was said in the logs of a folder, one after another."""
    for step in _steps(folder):
        yield from chain(step.before, [{"role": "assistant", **step.answer}])


def _filled(started: Lab, agent: Agent, name: str, messages: Sequence[dict[str, Any]]) -> str:
    """The id of a session with these messages; one that is managed asks for contexts."""
    agent.ask("PUT", f"sessions/{name}", {"model": "claude-sonnet-4-5", "window": WINDOW})
    job = None
    for start in range(0, len(messages), AT_ONCE):
        batch = {"messages": messages[start : start + AT_ONCE]}
        job = agent.ask("POST", f"sessions/{name}/messages", batch).get("job", job)
        if name == "managed":
            agent.ask("GET", f"sessions/{name}/context")
    started.settle(job)
    return str(agent.ask("GET", f"sessions/{name}")["id"])


class Browser:
    """A kept-open connection, signed in."""

    def __init__(self, started: Lab) -> None:
        self.started = started
        self.connection = http.client.HTTPConnection("127.0.0.1", started.server.port, timeout=120)
        self.cookie = f"{SESSION_COOKIE_NAME}={started.server.cookie}"

    def get(self, path: str, *, packed: bool = True) -> bytes:
        """The answer's body as it was sent; decoded unless `packed`."""
        headers = {"Cookie": self.cookie} | ({"Accept-Encoding": "gzip"} if packed else {})
        self.connection.request("GET", path, headers=headers)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:300])
        return body

    def spent(self, paths: Sequence[str]) -> tuple[float, float]:
        """CPU ms of the server for all of these, the mean of many rounds; and their KB."""
        size = sum(len(self.get(path)) for path in paths)
        before = self.started.cpu()
        for _ in range(ROUNDS):
            for path in paths:
                self.get(path)
        return 1000 * (self.started.cpu() - before) / ROUNDS, size / 1000


def _opened(browser: Browser, name: str, session: str) -> None:
    api = f"/api/v1/sessions/{session}"
    manifest = json.loads(browser.get(f"{api}/manifest?run={name}", packed=False))
    count = len(manifest["entries"]["from"])
    last = ",".join(map(str, range(max(count - IN_VIEW, 0), count)))
    paths = [
        f"/sessions/{session}/",
        f"{api}/manifest?run={name}&packed=true",
        f"{api}/previews?run={name}&at={last}",
    ]
    for path in paths:
        cpu, size = browser.spent([path])
        say(f"  {path[:70]:<72}{cpu:>7.1f} ms {size:>7.1f} KB")
    cpu, size = browser.spent(paths)
    say(f"  {name}: {count:,} entries")
    what = f"opening {MESSAGES:,} messages of real logs over HTTP, {name}"
    figure(f"{what}: server CPU, ms", cpu, at_most=25)
    figure(f"{what}: KB, gzip", size, at_most=120)


def _step_with(browser: Browser, session: str) -> int:
    """The first step whose context has the tokens to compare."""
    manifest = json.loads(browser.get(f"/api/v1/sessions/{session}/manifest", packed=False))
    low, high = 1, manifest["session"]["steps"]
    while low < high:
        middle = (low + high) // 2
        path = f"/api/v1/sessions/{session}/diff?a={middle}&b={middle}"
        if json.loads(browser.get(path, packed=False))["a"]["tokens"] < TOKENS:
            low = middle + 1
        else:
            high = middle
    return low


def _compared(
    browser: Browser, what: str, session: str, step: int, run: str, beside: str = ""
) -> None:
    a = step if beside else max(step - APART, 1)
    query = f"run={run}" + (f"&with={beside}" if beside else "")
    rows = f"/api/v1/sessions/{session}/diff?{query}&a={a}&b={step}"
    sides = json.loads(browser.get(rows, packed=False))
    say(f"  {what}: {sides['a']['tokens']:,} and {sides['b']['tokens']:,} tokens")
    cpu, _ = browser.spent([f"/sessions/{session}/diff/{a}..{step}/?{query}", rows])
    figure(f"diff of {what} at {TOKENS:,} tokens over HTTP: server CPU, ms", cpu, at_most=30)


if __name__ == "__main__":
    main()
