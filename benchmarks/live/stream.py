"""Thirty appends a second of 50 kB each, and an agent that asks for its contexts: a soak.

    python -m benchmarks.live.stream                  # a minute
    python -m benchmarks.live.stream --minutes 10     # make soak

Ten agents with a session and a connection each, three messages a second apiece, sent when they
are due: who is late catches up, so that a slow server is not asked less. Latency counts from the
moment at which a message was due. An eleventh agent takes a step a second. `/healthz` is asked ten
times a second on a connection of its own. Memory is sampled twice a second, of server and job
processes; its slope is that of the second half.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
from benchmarks.figures import figure  # noqa: E402
from benchmarks.processes import percentile, say  # noqa: E402
from benchmarks.record.ingest import bodies  # noqa: E402
from benchmarks.server import Lab, lab  # noqa: E402

AGENTS, RATE, LENGTH = 10, 30.0, 50_000


def main() -> None:
    """Stream for a while, on SQLite."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    seconds = parser.parse_args().minutes * 60
    text = "".join(path.read_text() for path in sorted((ROOT / "compaction").rglob("*.py")))
    with lab() as started:
        agents = [_Agent(started, number, text) for number in range(AGENTS)]
        spent, begun = started.cpu(), time.perf_counter()
        for number, agent in enumerate(agents):
            agent.begin(begun + number / RATE, begun + seconds)
        walker, probe = _Walker(started, begun + seconds), _Probe(started, begun + seconds)
        walker.start()
        probe.start()
        samples = _watch(started, agents)
        wall = time.perf_counter() - begun
        spent = started.cpu() - spent
        walker.join()
        probe.join()
    latencies = [each for agent in agents for each in agent.latencies]
    service = [each for agent in agents for each in agent.service]
    errors = sum(agent.errors for agent in agents)
    say(f"{len(latencies):,} appends of {LENGTH:,} characters in {wall:.0f} s, {errors} errors")
    timed = (
        ("since due", latencies),
        ("of the request", service),
        ("of a step", walker.latencies),
        ("of /healthz", probe.latencies),
    )
    for name, values in timed:
        said = ", ".join(f"p{share:.0%}".rstrip("%") + f" {percentile(values, share):.0f} ms"
                         for share in (0.5, 0.95, 0.99))  # fmt: skip
        say(f"latency {name}: {said}, worst {max(values):.0f} ms")
    say(f"WAL at its largest: {max(sample.wal for sample in samples):.0f} MB")
    under = "30 appends/s of 50 kB"
    figure(f"{under}: p95 since due, ms", percentile(latencies, 0.95), at_most=250)
    figure(f"{under}: worst /healthz, ms", max(probe.latencies), at_most=250)
    figure(f"{under}: CPU of an append with jobs, ms", spent / len(latencies) * 1000, at_most=30)
    figure(f"{under}: most memory, MB (PSS)", max(one.memory for one in samples), at_most=350)
    figure(f"{under}: memory slope, MB a minute", _slope(samples[len(samples) // 2 :]), at_most=5)
    figure(f"{under}: errors", errors, at_most=0)


class _Walker(threading.Thread):
    """Takes a step a second: two messages in, the next context out."""

    def __init__(self, lab: Lab, end: float) -> None:
        super().__init__(daemon=True)
        self.agent, self.end = lab.agent(), end
        self.latencies: list[float] = []

    def run(self) -> None:
        """One step after the other."""
        known = ""
        begun = time.perf_counter()
        for number, body in enumerate(bodies(0, int(self.end - begun), 2)):
            time.sleep(max(0.0, begun + number - time.perf_counter()))
            given = json.loads(body) | ({"since": known} if known else {})
            sent = time.perf_counter()
            known = self.agent.ask("POST", "sessions/walker/steps", given)["context_id"]
            self.latencies.append((time.perf_counter() - sent) * 1000)


class _Probe(threading.Thread):
    """Asks for /healthz."""

    def __init__(self, lab: Lab, end: float) -> None:
        super().__init__(daemon=True)
        self.port, self.end = lab.server.port, end
        self.latencies: list[float] = []

    def run(self) -> None:
        """Ask ten times a second."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while (begun := time.perf_counter()) < self.end:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            self.latencies.append((time.perf_counter() - begun) * 1000)
            time.sleep(0.1)


class _Agent(threading.Thread):
    """Appends a tool call and its result in turn, each when it is due."""

    def __init__(self, lab: Lab, number: int, text: str) -> None:
        super().__init__(daemon=True)
        self.agent, self.session, self.text = lab.agent(), f"stream-{number}", text
        self.latencies: list[float] = []
        self.service: list[float] = []
        self.errors = 0
        self.agent.ask("PUT", f"sessions/{self.session}", {"model": "claude-sonnet-4-5"})

    def begin(self, first: float, end: float) -> None:
        """Start with the first message due at one moment, and stop at another."""
        self.first, self.end = first, end
        self.start()

    def run(self) -> None:
        """One message after the other."""
        for number in range(10**6):
            due = self.first + number * AGENTS / RATE
            if due >= self.end:
                return
            time.sleep(max(0.0, due - time.perf_counter()))
            body = json.dumps({"messages": [self._message(number)]}).encode()
            sent = time.perf_counter()
            try:
                self.agent.send("POST", f"sessions/{self.session}/messages", body)
            except (OSError, RuntimeError):
                self.errors += 1
                self.agent.connection.close()
            now = time.perf_counter()
            self.latencies.append((now - due) * 1000)
            self.service.append((now - sent) * 1000)

    def _message(self, number: int) -> dict[str, object]:
        call = f"toolu_{number // 2}"
        at = number * 7919 % (len(self.text) - LENGTH)
        text = f"{self.session} {number} {self.text[at : at + LENGTH]}"
        if number % 2 == 0:
            given = {"path": f"f{number}.py", "content": text}
            use = {"type": "tool_use", "id": call, "name": "Write", "input": given}
            return {"role": "assistant", "content": [use]}
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        return {"role": "user", "content": [result]}


class _Sample(NamedTuple):
    """Memory (PSS) and write-ahead log in MB, seconds after the start."""

    at: float
    memory: float
    wal: float


def _watch(started: Lab, agents: list[_Agent]) -> list[_Sample]:
    """Sample until all have ended."""
    begun, samples = time.perf_counter(), []
    while any(agent.is_alive() for agent in agents):
        logs = started.folder.glob("*.sqlite3-wal")
        wal = sum(path.stat().st_size for path in logs) / 1024 / 1024
        samples.append(_Sample(time.perf_counter() - begun, started.memory()[1], wal))
        time.sleep(0.5)
    return samples


def _slope(samples: list[_Sample]) -> float:
    """MB a minute."""
    line = statistics.linear_regression(
        [sample.at for sample in samples], [sample.memory for sample in samples]
    )
    return line.slope * 60


if __name__ == "__main__":
    main()
