"""Our proxy beside others on the same recorded requests: docs/live/proxy.md.

    python -m benchmarks.live.proxies --harness H --to FILE [--litellm P] [--headroom P] SESSION ...

`--harness` is the folder of a harness for recorded Claude Code sessions (`harness.py` and `shift/`;
not part of this repository); P is the `bin` of an environment with `litellm[proxy]` or
`headroom-ai[proxy]`; `--before` another checkout of this repository. Every request goes to all
systems in a random order, each with a provider of its own, so that all meet the same load; the
clock of all follows the recording. What the provider itself takes is subtracted. CPU: all processes
of a system, jobs included, until they rest.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.live.upstream import Json, Upstream, upstream
from benchmarks.processes import cpu_seconds, machine, percentile, say
from benchmarks.server import ROOT, environment, served
from tests.conftest import free_port, wait_until

START_SECONDS = 120.0
PAUSE = 0.04
"""Seconds after each answer in which a system may store it before the next one is measured."""
KEEP_SECONDS = 2.0
"""How long a connection may wait for the next request."""
HEADERS = {
    "content-type": "application/json",
    "x-api-key": "sk-ant-none",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "claude-code-20250219",
    "user-agent": "claude-cli/2.1.197 (external, cli)",
}
Started = tuple[str, Sequence[int]]
"""The address in place of the provider's, and the processes."""


@dataclass
class System:
    """A system under test, and what was found."""

    name: str
    up: Upstream
    address: str
    pids: Sequence[int]
    harness: Any
    latencies: list[float] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0

    def __post_init__(self) -> None:
        self.begin()
        where = urlsplit(self.address)
        self._last = 0.0
        self._path = f"{where.path.rstrip('/')}/v1/messages"
        self._http = http.client.HTTPConnection(where.netloc, timeout=120)

    def begin(self) -> None:
        """Begin another session."""
        self.cache, self.bound = self.harness.Cache(), self.harness.Bound()

    def spent(self) -> float:
        """CPU seconds so far."""
        return sum(cpu_seconds(pid) for pid in self.pids)

    def ask(self, request: Json, data: bytes, headers: Mapping[str, str]) -> None:
        """Send a request, and measure until the first byte of its answer."""
        self.up.expect(request["reply"], self.cache, request["at"])
        if time.monotonic() - self._last > KEEP_SECONDS:
            self._http.close()  # they tire of waiting, too; the next request opens it
        try:
            answer, first = self._answer(data, headers)
        except (OSError, http.client.HTTPException):  # it closed the connection meanwhile
            self._http.close()
            self.sums["again"] += 1
            answer, first = self._answer(data, headers)
        self._last = time.monotonic()
        self.latencies.append(1000 * (first - self.up.seconds))
        self.sums["refused"] += answer.status != 200
        self.marks[answer.headers.get("x-contextlab", str(answer.status))] += 1

    def _answer(
        self, data: bytes, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, float]:
        self.up.sent, self.up.seconds = [], 0.0
        begun = time.perf_counter()
        self._http.request("POST", self._path, data, {**HEADERS, **headers})
        answer = self._http.getresponse()
        answer.read(1)
        first = time.perf_counter() - begun
        answer.read()
        return answer, first

    def score(self, questions: Any, number: int, reply: Json, body: Json) -> None:
        """Judge what reached the provider by the harness's measures."""
        self.sums["unsent"] += not self.up.sent
        if not self.up.sent:
            return
        harness, (sent, units, _) = self.harness, self.up.sent[-1]
        for name in ("cost", "strict"):
            self.sums[name] += sum(use[name] for _, _, use in self.up.sent)
        self.sums["tokens"] += sum(unit.tokens for unit in units)
        self.sums["invalid"] += bool(harness.faults(sent))
        self.sums["bound"] += self.bound.broken(units, harness.head_of(sent), reply)
        self.sums["same"] += sent["messages"] == body["messages"]
        names = ("needs", "inc", "_", "edits", "edit_ok")
        self.sums.update(dict(zip(names, harness.score(questions, number, units), strict=True)))


class Bench:
    """The harness, and the clock that systems follow."""

    def __init__(self, folder: Path, clock: Path) -> None:
        spec = importlib.util.spec_from_file_location("harness", folder / "harness.py")
        assert spec is not None and spec.loader is not None
        self.harness = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.harness)
        self._shift, self._clock = folder / "shift", clock
        self.move(None)

    def move(self, at: float | None) -> None:
        """Set the clock to a recorded time (ms)."""
        ahead = 0.0 if at is None else at / 1000 - time.time()
        self._clock.write_bytes(struct.pack("d", ahead))

    def shifted(self, *more: Path) -> dict[str, str]:
        """The environment of a process that follows the clock."""
        paths = os.pathsep.join(str(one) for one in (self._shift, *more))
        return {"PYTHONPATH": paths, "REPLAY_CLOCK": str(self._clock)}

    @contextmanager
    def ours(self, url: str, mode: str, root: Path) -> Iterator[Started]:
        """Our server and proxy, from a checkout."""
        given = self.shifted(root)
        with tempfile.TemporaryDirectory() as folder, served(Path(folder), **given) as lab:
            port, at = free_port(), f"http://127.0.0.1:{lab.server.port}"
            command = [sys.executable, "-m", "contextlab.cli", "proxy", "--port", str(port)]
            command += ["--server", at, "--anthropic", url]
            with _running(command, port, environment(Path(folder), **given)) as pid:
                address = f"http://127.0.0.1:{port}/proxy/{lab.token}/{mode}/anthropic"
                yield address, (lab.pid, pid)

    @contextmanager
    def litellm(self, url: str, binaries: Path) -> Iterator[Started]:
        """LiteLLM's proxy, which passes all models on to one provider."""
        with tempfile.TemporaryDirectory() as folder:
            config, port = Path(folder) / "config.yaml", free_port()
            given = {"model": "anthropic/*", "api_base": url, "api_key": "sk-ant-none"}
            models = [{"model_name": "*", "litellm_params": given}]
            config.write_text(json.dumps({"model_list": models}))
            command = [str(binaries / "litellm"), "--config", str(config), "--port", str(port)]
            local = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": folder}
            with _running(command, port, local) as pid:
                yield f"http://127.0.0.1:{port}", (pid,)

    @contextmanager
    def headroom(self, url: str, binaries: Path) -> Iterator[Started]:
        """Headroom's proxy, with its defaults."""
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            command = [str(binaries / "headroom"), "proxy", "--port", str(port)]
            local = {"ANTHROPIC_TARGET_API_URL": url, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            given = {**os.environ, **self.shifted(), **local, "HOME": folder}
            with _running(command, port, given) as pid:
                yield f"http://127.0.0.1:{port}", (pid,)


@contextmanager
def _running(command: Sequence[str], port: int, given: Mapping[str, str]) -> Iterator[int]:
    """A process that listens on a port."""
    with tempfile.TemporaryFile() as log:
        started = subprocess.Popen(command, env=dict(given), stdout=log, stderr=log)
        try:
            wait_until(lambda: started.poll() is not None or _answers(port), START_SECONDS)
            if started.poll() is not None:
                log.seek(0)
                raise RuntimeError(log.read()[-2000:].decode("utf-8", "replace"))
            yield started.pid
        finally:
            started.send_signal(signal.SIGTERM)
            started.wait()


def _answers(port: int) -> bool:
    at = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        at.request("GET", "/")
        return bool(at.getresponse().status)
    except OSError:
        return False
    finally:
        at.close()


def measure(bench: Bench, systems: Sequence[System], paths: Sequence[str], most: int) -> None:
    """Replay sessions through all systems."""
    chance = random.Random(1)
    for path in paths:
        session = bench.harness.parse(path)
        questions = bench.harness.questions(session)
        headers = {"x-claude-code-session-id": str(session["id"])}
        for one in systems:
            one.begin()
        for number, request in enumerate(session["requests"][:most]):
            body = bench.harness.body_of(session, request)
            data = json.dumps(body, ensure_ascii=False).encode("utf8", "replace")
            for one in chance.sample(systems, len(systems)):
                bench.move(request["at"])
                one.ask(request, data, headers)
                one.score(questions, number, request["reply"], body)
                time.sleep(PAUSE)
        say(f"{path[-20:]} {number + 1} calls; load {os.getloadavg()[0]:.1f}")
        for one in systems:
            say(row(one, systems[0]))


def rest(systems: Sequence[System], before: Sequence[float]) -> None:
    """Wait until all systems rest, and note the CPU of each since `before`."""
    spent, limit = [0.0] * len(systems), time.monotonic() + 60
    while time.monotonic() < limit:
        now = [one.spent() for one in systems]
        # What idle processes take by themselves is little.
        if sum(now) - sum(spent) < 0.1 * len(systems):
            break
        spent = now
        time.sleep(2)
    for one, begun in zip(systems, before, strict=True):
        one.cpu = one.spent() - begun


def row(one: System, direct: System) -> str:
    """What was found, as a row of the table."""
    sums, base, calls = one.sums, direct.sums, len(one.latencies)
    taken = percentile(direct.latencies, 0.5)
    shares = [sums[name] / max(base[name], 1) for name in ("tokens", "cost", "strict")]
    p50, p95 = (percentile(one.latencies, at) - taken for at in (0.5, 0.95))
    kept = sums["inc"] / max(sums["needs"], 1), sums["edit_ok"] / max(sums["edits"], 1)
    parts = [
        one.name,
        f"{p50:.1f} / {p95:.0f}",
        f"{1000 * one.cpu / calls:.1f}",
        f"{shares[0]:.3f}",
    ]
    parts += [f"{shares[1]:.3f} / {shares[2]:.3f}", *(f"{share:.3f}" for share in kept)]
    parts += [str(sums[name]) for name in ("bound", "invalid", "refused", "unsent", "again")]
    return f"| {' | '.join(parts)} |"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--harness", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    for name in ("--litellm", "--headroom", "--before"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--most", type=int, default=10_000, help="calls of each session")
    parser.add_argument("sessions", nargs="+")
    asked = parser.parse_args()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.harness, Path(folder) / "clock")
        systems: list[System] = []

        def add(name: str, start: Callable[..., Any], *given: Any) -> None:
            up = stack.enter_context(upstream(bench.harness))
            try:
                address, pids = stack.enter_context(start(up.url, *given))
            except (RuntimeError, OSError, AssertionError) as error:
                say(f"{name} did not start: {error}")
                return
            systems.append(System(name, up, address, pids, bench.harness))

        add("direct", _nothing)
        for root, tail in ((ROOT, ""), (asked.before, ", before")):
            for mode in ("observe", "manage") if root else ():
                add(f"ContextLab, {mode}{tail}", bench.ours, mode, root)
        for name in ("litellm", "headroom"):
            if binaries := getattr(asked, name):
                add(name, getattr(bench, name), binaries)
        begun = [one.spent() for one in systems]
        measure(bench, systems, asked.sessions, asked.most)
        rest(systems, begun)
        say(machine())
        for one in systems:
            say(row(one, systems[0]))
            say(f"    {dict(one.marks)}")
        found = [
            {**vars(one), "up": "", "harness": "", "cache": "", "bound": ""} for one in systems
        ]
        asked.to.write_text(json.dumps(found, default=str))


@contextmanager
def _nothing(url: str) -> Iterator[Started]:
    yield url, ()


if __name__ == "__main__":
    main()
