"""Whole steps of agents: the answer with its usage and the tools' results in, the next context out.

    CONTEXTLAB_CORPUS=~/.claude/projects python -m benchmarks.live.steps

Real content: the sessions of a folder of logs, one after another in one session, until there are
2,000 steps. Over HTTP, one request a step, as fast as the server answers. CPU of the server with
its job processes until everything is settled; the agent is not counted. The reported usage is that
of the recorded calls.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks.figures import figure
from benchmarks.processes import say
from benchmarks.server import Agent, Lab, lab
from sessions.importers import NotALog, parse
from sessions.importers.records import Call, Message

STEPS = 2_000
WINDOWS = ((1, 100), (500, 600), (1_900, 2_000))
STEP_MS, GROWTH = 25, 1.2
"""CPU of a step in ms, and how much more the last may take than the first."""


def main() -> None:
    """Run it."""
    corpus = Path(os.environ["CONTEXTLAB_CORPUS"]).expanduser()
    steps = list(islice(chain.from_iterable(sessions_of(corpus)), STEPS))
    say(f"{'steps':<14}{'CPU ms':>8}{'KB out':>8}{'memory MB':>11}")
    found = []
    with lab() as started:
        walk = _Walk(started, started.agent())
        for begin, end in WINDOWS:
            if begin < len(steps):
                spent = walk.window(steps, begin, end)
                figure(f"live step {begin:,} to {end:,}: CPU with jobs, ms", spent, at_most=STEP_MS)
                found.append(spent)
        figure("agent after its last step: memory, MB (PSS)", started.memory()[1], at_most=250)
    figure("live step: last window over the first", found[-1] / found[0], at_most=GROWTH)


@dataclass
class Step:
    """What was said before a call, the call's answer, and its usage."""

    before: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)
    usage: Any = None


def sessions_of(folder: Path) -> Iterator[list[Step]]:
    """The steps of each session in the logs of a folder."""
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            log = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for session in log.sessions:
            yield list(_steps_of(session.records))


def _steps_of(records: list[Any]) -> Iterator[Step]:
    usage = {one.call: one.usage_raw for one in records if isinstance(one, Call) and one.usage_raw}
    step, call = Step(), ""
    for one in (record for record in records if isinstance(record, Message) and record.blocks):
        said = {"role": one.role, "content": one.blocks}
        if one.role == "assistant" and one.call and one.call == call:
            step.answer["content"] = [*step.answer["content"], *one.blocks]
        elif one.role == "assistant":
            if step.answer:
                yield step
                step = Step()
            step.answer, step.usage, call = said, usage.get(one.call), one.call or ""
        elif one.role == "user":
            if step.answer:
                yield step
                step, call = Step(), ""
            step.before.append(said)


@dataclass
class _Walk:
    """An agent at work."""

    started: Lab
    agent: Agent
    at: int = 0
    context: str = ""
    received: int = 0

    def window(self, steps: list[Step], begin: int, end: int) -> float:
        """Walk on to a window, and through it; return the CPU of a step in ms."""
        self._through(steps, begin)
        before, received, end = self.started.cpu(), self.received, min(end, len(steps))
        self._through(steps, end)
        spent = (self.started.cpu() - before) / (end - begin) * 1000
        size = (self.received - received) / (end - begin) / 1024
        _, memory = self.started.memory()
        say(f"{begin:>5,} – {end:<6,}{spent:>8.1f}{size:>8.1f}{memory:>11.0f}")
        return spent

    def _through(self, steps: list[Step], end: int) -> None:
        while self.at < end:
            last = steps[self.at - 1] if self.at else Step()
            messages = [*([last.answer] if last.answer else []), *steps[self.at].before]
            body: dict[str, Any] = {"messages": messages or None}
            if self.context:
                body["since"] = self.context
                if last.usage and last.answer:
                    body |= {"context_id": self.context, "usage": last.usage}
            answer = self.agent.ask("POST", "sessions/walk/steps", body)
            self.received += self.agent.received
            self.context = answer["context_id"]
            self.at += 1
        self._settle()

    def _settle(self) -> None:
        """Wait until all jobs have ended; asking the server would cost it CPU."""
        (path,) = self.started.folder.glob("*.sqlite3")
        store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        jobs = "SELECT count(*) FROM agent_sessions_job WHERE state IN ('queued', 'running')"
        while store.execute(jobs).fetchone()[0]:
            time.sleep(0.05)
        store.close()


if __name__ == "__main__":
    main()
