"""Thirty appends a second of 50 kB each: latency, errors, memory.

    python -m benchmarks.live.stream                  # a minute
    python -m benchmarks.live.stream --minutes 10

Ten agents with a session and a connection each, three messages a second apiece, sent when they
are due: who is late catches up, so that a slow server is not asked less. Latency counts from the
moment at which a message was due. Memory: the highest seen of server and job processes.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
from benchmarks.processes import percentile, say  # noqa: E402
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
        peak = _watch(started, agents)
        wall = time.perf_counter() - begun
        spent = started.cpu() - spent
    latencies = [each for agent in agents for each in agent.latencies]
    service = [each for agent in agents for each in agent.service]
    errors = sum(agent.errors for agent in agents)
    say(f"{len(latencies):,} appends of {LENGTH:,} characters in {wall:.0f} s, {errors} errors")
    for name, values in (("since due", latencies), ("of the request", service)):
        said = ", ".join(f"p{share:.0%}".rstrip("%") + f" {percentile(values, share):.0f} ms"
                         for share in (0.5, 0.95, 0.99))  # fmt: skip
        say(f"latency {name}: {said}" + (" (to reach: p95 250 ms)" if values is latencies else ""))
    say(
        f"CPU: {spent / wall:.2f} cores, {spent / len(latencies) * 1000:.1f} ms an append with jobs"
    )
    say(f"memory at its highest: RSS {peak[0]:.0f} MB, PSS {peak[1]:.0f} MB (to reach: 350 MB)")


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


def _watch(started: Lab, agents: list[_Agent]) -> tuple[float, float]:
    """Return the peak memory until all have ended: RSS, PSS."""
    peak = (0.0, 0.0)
    while any(agent.is_alive() for agent in agents):
        now = started.memory()
        peak = (max(peak[0], now[0]), max(peak[1], now[1]))
        time.sleep(0.5)
    return peak


if __name__ == "__main__":
    main()
