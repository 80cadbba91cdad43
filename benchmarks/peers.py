"""MLflow and Phoenix: the same 1 KB messages as spans over OTLP, a server of each, CPU alike.

    python -m benchmarks.peers --install     # virtual environments below the cache folder, 1.7 GB
    python -m benchmarks.peers

Nothing of ContextLab needs them. A message is one span that holds its JSON as `input.value`, all
of one trace, in batches of 100 and one by one, after 500 of warm-up, on one kept-open connection,
into the server's own SQLite file. Messages per CPU-second of the server's process tree, until that
file has all of them; `at answer` is the share it had when the last request was answered. Their
defaults otherwise, but for telemetry, which is off, and one worker of MLflow, whose four each pay
for warming up.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import cpu_seconds, memory_mb, percentile, say
from benchmarks.record.ingest import BATCH, BATCHES, SINGLES, bodies
from tests.conftest import free_port

HOME = Path(
    os.environ.get("CONTEXTLAB_BENCH_PEERS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "contextlab-bench"
)
WARM = 5
START_SECONDS = 120


class Peer(NamedTuple):
    """A server to compare with: its packages, its command, and where it stores rows."""

    name: str
    package: str
    command: list[str]
    environment: dict[str, str]
    health: str
    headers: dict[str, str]


PEERS = (
    Peer(
        "mlflow",
        "mlflow",
        ["mlflow", "server", "--port", "{port}", "--workers", "1"]
        + ["--backend-store-uri", "sqlite:///{folder}/rows.db"]
        + ["--default-artifact-root", "{folder}/artefacts"],
        {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"},
        "/health",
        {"x-mlflow-experiment-id": "0"},
    ),
    Peer(
        "phoenix",
        "arize-phoenix",
        ["phoenix", "serve"],
        {
            "PHOENIX_PORT": "{port}",
            "PHOENIX_GRPC_PORT": "{grpc}",
            "PHOENIX_WORKING_DIR": "{folder}",
            "PHOENIX_SQL_DATABASE_URL": "sqlite:///{folder}/rows.db",
            "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        "/healthz",
        {},
    ),
)


SHAPERS = {
    "langchain": "langchain",
    "openhands": "openhands-sdk",
    "llama-index": "llama-index-core",
    "semantic-kernel": "semantic-kernel",
    "agent-framework": "agent-framework-core",
}
"""Libraries that shape a context (benchmarks/policies/shaping.py), by installed package."""

NEWER = {
    "openhands-sdk": (os.environ.get("CONTEXTLAB_BENCH_PYTHON", ""), "python3.12", "python3.13")
}
"""Packages that want a newer Python than ours, and where it may be."""


def main() -> None:
    """Install the named peers, or measure those installed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the environments first")
    parser.add_argument("--only", choices=[peer.name for peer in PEERS])
    asked = parser.parse_args()
    if asked.install:
        for peer in PEERS:
            install(peer.name, peer.package)
        for name, package in SHAPERS.items():
            install(name, package)
    say(
        f"{'peer':<18}{'a request':>10}{'a CPU-second':>14}{'a second':>10}{'p50 ms':>8}"
        f"{'p95 ms':>8}{'at answer':>11}{'start s':>9}{'CPU s':>7}{'idle PSS MB':>13}"
    )
    for peer in PEERS:
        if asked.only and peer.name != asked.only:
            continue
        if not python_of(peer.name):
            say(f"{peer.name:<18}is not installed: `python -m benchmarks.peers --install`")
            continue
        _measure(peer)


def python_of(name: str) -> str:
    """Return the interpreter of a peer's environment; empty if it is not installed."""
    found = HOME / name / "bin" / "python"
    return str(found) if found.exists() else ""


def install(name: str, package: str) -> None:
    """Create the environment of a peer, or report why that fails."""
    folder = HOME / name
    python = next(filter(_starts, NEWER.get(package, (sys.executable,))), None)
    if python is None:
        say(f"{package} does not install: CONTEXTLAB_BENCH_PYTHON names no Python 3.12")
        return
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        (folder / "bin" / "python").unlink()
        say(f"{package} does not install: {done.stderr.strip().splitlines()[-1]}")


def _starts(python: str) -> bool:
    """Return whether the interpreter exists and runs."""
    found = shutil.which(python)
    return (
        found is not None
        and not subprocess.run([found, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode
    )


def _measure(peer: Peer) -> None:
    requests = subprocess.run(
        [python_of(peer.name), "-c", _MAKE, str(WARM * BATCH + BATCH * BATCHES + SINGLES)],
        input="\n".join(body.decode() for body in bodies(0, WARM + BATCHES + SINGLES // BATCH)),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.split()
    spans = [bytes.fromhex(one) for one in requests]
    with _started(peer) as (server, port, folder, wall, cpu):
        time.sleep(5)
        _, memory = memory_mb(server.pid)
        sender = _Sender(peer, port, Path(folder) / "rows.db")
        sender.send(spans[: WARM * BATCH], BATCH)
        left = spans[WARM * BATCH :]
        for size, some in ((BATCH, left[: BATCH * BATCHES]), (1, left[BATCH * BATCHES :])):
            spent, begun = cpu_seconds(server.pid), time.perf_counter()
            latencies, share = sender.send(some, size)
            took = time.perf_counter() - begun
            spent = cpu_seconds(server.pid) - spent
            say(
                f"{peer.name + ' ' + _version(peer):<18}{size:>10}{len(some) / spent:>14,.0f}"
                f"{len(some) / took:>10,.0f}{percentile(latencies, 0.5):>8.1f}"
                f"{percentile(latencies, 0.95):>8.1f}{share:>11.0%}{wall:>9.1f}{cpu:>7.1f}"
                f"{memory:>13.0f}"
            )


class _Sender:
    """A connection to a peer, which also watches its file."""

    def __init__(self, peer: Peer, port: int, rows: Path) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Content-Type": "application/x-protobuf", **peer.headers}
        self.rows, self.sent = rows, 0

    def send(self, spans: list[bytes], size: int) -> tuple[list[float], float]:
        """Return latencies in ms and the share stored at the last answer; wait for the rest."""
        latencies, before = [], self.sent
        self.connection.close()  # a server may have grown tired of waiting; the next one opens it
        for start in range(0, len(spans), size):
            # Messages of protobuf joined are one message with the repeated fields of both.
            body = b"".join(spans[start : start + size])
            begun = time.perf_counter()
            self.connection.request("POST", "/v1/traces", body, self.headers)
            response = self.connection.getresponse()
            said = response.read()
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {said[:300]!r}")
            latencies.append((time.perf_counter() - begun) * 1000)
        self.sent += len(spans)
        share = (self._stored() - before) / len(spans)
        while self._stored() < self.sent:
            time.sleep(0.1)
        return latencies, share

    def _stored(self) -> int:
        with closing(sqlite3.connect(f"file:{self.rows}?mode=ro", uri=True, timeout=30)) as rows:
            return int(rows.execute("SELECT COUNT(*) FROM spans").fetchone()[0])


@contextmanager
def _started(
    peer: Peer,
) -> Iterator[tuple[subprocess.Popen[bytes], int, str, float, float]]:
    """Start a server; return it, its port, folder, start time and CPU time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        values = {"port": port, "grpc": free_port(), "folder": folder}
        home = HOME / peer.name / "bin"
        given = {name: text.format(**values) for name, text in peer.environment.items()}
        begun = time.perf_counter()
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(
                [str(home / peer.command[0]), *(t.format(**values) for t in peer.command[1:])],
                env={**os.environ, **given, "PATH": f"{home}:{os.environ['PATH']}"},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            while not _healthy(port, peer.health):
                if server.poll() is not None or time.perf_counter() - begun > START_SECONDS:
                    raise RuntimeError((Path(folder) / "log").read_text()[-2000:])
                time.sleep(0.05)
            yield server, port, folder, time.perf_counter() - begun, cpu_seconds(server.pid)
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _healthy(port: int, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _version(peer: Peer) -> str:
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    return subprocess.run(
        [python_of(peer.name), "-c", code], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


_TRACE = secrets.token_hex(16)
_MAKE = f"""
import json, os, sys, time
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
now = time.time_ns()
messages = [json.dumps(m) for line in sys.stdin for m in json.loads(line)["messages"]]
for number, text in enumerate(messages[:int(sys.argv[1])]):
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes.fromhex("{_TRACE}"), (number + 1).to_bytes(8, "big")
    if number:
        span.parent_span_id = (1).to_bytes(8, "big")
    span.name, span.kind = "message", 1
    span.start_time_unix_nano, span.end_time_unix_nano = now + number, now + number + 1
    for key, value in (("openinference.span.kind", "LLM"), ("input.value", text)):
        pair = span.attributes.add()
        pair.key, pair.value.string_value = key, value
    print(request.SerializeToString().hex())
"""

if __name__ == "__main__":
    main()
