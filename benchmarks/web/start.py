"""Start to the first 200, and the memory of all processes that idle.

    python -m benchmarks.web.start

Of `contextlab serve` on an empty folder (the database is made) and on one that is there; then
once it has waited ten seconds with nothing to do, and again some seconds after a live session's
first messages, when a job process and the tokenizer are loaded.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import figure
from benchmarks.processes import cpu_seconds, percentile, say, tree
from benchmarks.record.ingest import bodies
from benchmarks.server import environment, served
from tests.conftest import free_port

ROUNDS = 5
IDLE_SECONDS = 10


def main() -> None:
    """Start several times, then measure an idle server."""
    say(f"{'start':<28}{'s, median':>10}{'s, worst':>10}{'CPU s':>8}")
    for name, fresh in (("empty folder", True), ("existing database", False)):
        with tempfile.TemporaryDirectory() as folder:
            if not fresh:
                _start(Path(folder))
            taken = []
            for number in range(ROUNDS):
                place = Path(folder) / str(number) if fresh else Path(folder)
                place.mkdir(exist_ok=True)
                taken.append(_start(place))
        walls = [wall for wall, _ in taken]
        cpu = percentile([each for _, each in taken], 0.5)
        say(f"{name:<28}{percentile(walls, 0.5):>10.2f}{max(walls):>10.2f}{cpu:>8.2f}")
        figure(f"start to first 200, {name}: s, median", percentile(walls, 0.5), at_most=2)
    say()
    say(f"{'memory':<28}{'RSS MB':>10}{'PSS MB':>10}{'processes':>11}")
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as lab:
        _memory("idle", lab)
        agent = lab.agent()
        answer = agent.ask("POST", "sessions/run/messages", {"messages": _two()})
        lab.settle(answer["job"])
        agent.ask("GET", "sessions/run/context")
        _memory("after a first append", lab)
        for body in bodies(2, 100):
            job = agent.send("POST", "sessions/run/messages", body)
        del job
        _memory("after 10,000 messages", lab)


def _two() -> list[dict[str, str]]:
    return [{"role": "user", "content": "Look."}, {"role": "assistant", "content": "I see."}]


def _memory(name: str, lab: object) -> None:
    time.sleep(IDLE_SECONDS)
    resident, proportional = lab.memory()  # type: ignore[attr-defined]
    count = len(tree(lab.pid))  # type: ignore[attr-defined]
    say(f"{name:<28}{resident:>10.0f}{proportional:>10.0f}{count:>11}")
    figure(f"memory, {name}: MB (PSS)", proportional, at_most=150 if name == "idle" else 250)


def _start(folder: Path) -> tuple[float, float]:
    """Return the seconds to the first 200, and CPU seconds until then."""
    port = free_port()
    begun = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "contextlab.cli", "serve"],
        env=environment(folder, PORT=str(port)),
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        while not _answers(port):
            time.sleep(0.01)
        return time.perf_counter() - begun, cpu_seconds(server.pid)
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/api/v1/openapi.json")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
