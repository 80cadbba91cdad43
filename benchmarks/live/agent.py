"""What an agent waits for at full speed: its context, and the appends of its step.

    python -m benchmarks.live.agent

Over HTTP, managed sessions of 1,000 and 10,000 messages, and one that nothing manages. Latency as
the agent sees it, CPU of the server with its job processes. A step is: take the context, append
the answer, append the tool's result. `alone` is the same request again, with nothing new and no
job at work.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from benchmarks.processes import percentile, say
from benchmarks.record.ingest import bodies
from benchmarks.server import Lab, lab

STEPS = 60
CASES = (("offload-first", 1_000), ("offload-first", 10_000), ("passthrough", 1_000))
"""Policies, and messages that the session has."""


def main() -> None:
    """Run every length and policy on one server."""
    say(f"{'policy':<15}{'messages':>9}  {'request':<24}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms':>8}")
    with lab() as started:
        for policy, length in CASES:
            _measure(started, policy, length)


def _measure(started: Lab, policy: str, length: int) -> None:
    agent, name = started.agent(), f"{policy}-{length}"
    about = {"model": "claude-sonnet-4-5", "window": 200_000, "policy": policy}
    agent.ask("PUT", f"sessions/{name}", about)
    for body in bodies(0, length // 100):
        job = json.loads(agent.send("POST", f"sessions/{name}/messages", body))["job"]
    started.settle(job)
    size = len(agent.send("GET", f"sessions/{name}/context"))

    def context() -> None:
        agent.send("GET", f"sessions/{name}/context")

    found = f"{policy:<15}{length:>9,}  "
    _alone(started, found + f"{f'context, {size // 1024:,} KB, alone':<24}", context)
    singles = iter(bodies(length * 10, 2 * STEPS, 1))
    waits: dict[str, list[float]] = {"context": [], "append": []}
    job, spent = None, started.cpu()
    for _ in range(STEPS):
        waits["context"].append(_timed(context))
        for _ in range(2):
            body = next(singles)
            begun = time.perf_counter()
            job = json.loads(agent.send("POST", f"sessions/{name}/messages", body))["job"]
            waits["append"].append((time.perf_counter() - begun) * 1000)
    started.settle(job)
    spent = (started.cpu() - spent) / STEPS * 1000
    for what, latencies in waits.items():
        say(f"{found}{what + ', in steps':<24}{_two(latencies)}")
    say(f"{found}{'a whole step, jobs too':<24}{'':>16}{spent:>8.1f}")


def _alone(started: Lab, found: str, ask: Callable[[], None]) -> None:
    spent = started.cpu()
    latencies = [_timed(ask) for _ in range(STEPS)]
    spent = (started.cpu() - spent) / STEPS * 1000
    say(f"{found}{_two(latencies)}{spent:>8.1f}")


def _timed(ask: Callable[[], None]) -> float:
    begun = time.perf_counter()
    ask()
    return (time.perf_counter() - begun) * 1000


def _two(latencies: list[float]) -> str:
    return f"{percentile(latencies, 0.5):>8.1f}{percentile(latencies, 0.95):>8.1f}"


if __name__ == "__main__":
    main()
