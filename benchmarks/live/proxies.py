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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.live.compared import System
from benchmarks.live.upstream import upstream
from benchmarks.processes import machine, percentile, say
from benchmarks.server import ROOT, environment, served
from tests.conftest import free_port, wait_until

START_SECONDS = 300.0
PAUSE = 0.04
"""Seconds after each answer in which a system may store it before the next one is measured."""
UNGUARDED = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"
"""Lets LiteLLM start without a key of its own."""
Started = tuple[str, Sequence[int]]
"""The address in place of the provider's, and the processes."""


class Bench:
    """The harness, and the clock that systems follow."""

    def __init__(self, folder: Path, clock: Path) -> None:
        spec = importlib.util.spec_from_file_location("harness", folder / "harness.py")
        assert spec is not None and spec.loader is not None
        self.harness = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.harness)
        self._shift, self._clock = folder / "shift", clock
        clock.write_bytes(struct.pack("d", 0.0))

    def move(self, at: float | None) -> None:
        """Set the clock to a recorded time (ms)."""
        ahead = 0.0 if at is None else at / 1000 - time.time()
        # In place: processes have the file mapped, and emptying it would end them.
        with self._clock.open("r+b") as file:
            file.write(struct.pack("d", ahead))

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
            with _running(command, port, environment(Path(folder), **given), root) as pid:
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
            local = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": folder, UNGUARDED: "true"}
            with _running(command, port, {**os.environ, **local}) as pid:
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
def _running(
    command: Sequence[str], port: int, given: Mapping[str, str], folder: Path | None = None
) -> Iterator[int]:
    """A process that listens on a port, in a folder."""
    with tempfile.TemporaryFile() as log:
        started = subprocess.Popen(command, env=dict(given), cwd=folder, stdout=log, stderr=log)
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


def measure(
    bench: Bench, systems: Sequence[System], paths: Sequence[str], most: int, every: float
) -> None:
    """Replay sessions through all systems, a call every so many seconds at most."""
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
            begun = time.monotonic()
            for one in chance.sample(systems, len(systems)):
                bench.move(request["at"])
                one.ask(request, data, headers)
                one.score(questions, number, request["reply"], body)
                time.sleep(PAUSE)
            time.sleep(max(0.0, begun + every - time.monotonic()))
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
    parts += [str(sums[name]) for name in ("bound", "invalid", "refused", "unsent", "failed")]
    return f"| {' | '.join(parts)} |"


def started(bench: Bench, stack: ExitStack, asked: argparse.Namespace) -> list[System]:
    """The systems that can be started here, all at once."""
    starts: list[tuple[str, Callable[..., Any], Sequence[Any]]] = [("direct", _nothing, ())]
    for root, tail in ((ROOT, ""), (asked.before, ", before")):
        for mode in asked.modes if root else ():
            starts.append((f"ContextLab, {mode}{tail}", bench.ours, (mode, root)))
    for name in ("litellm", "headroom"):
        if binaries := getattr(asked, name):
            starts.append((name, getattr(bench, name), (binaries,)))

    def start(given: tuple[str, Callable[..., Any], Sequence[Any]]) -> System | None:
        name, begin, more = given
        up = stack.enter_context(upstream(bench.harness))
        try:
            address, pids = stack.enter_context(begin(up.url, *more))
        except (RuntimeError, OSError, AssertionError) as error:
            say(f"{name} did not start: {error}")
            return None
        say(f"{name} has started")
        return System(name, up, address, pids, bench.harness)

    with ThreadPoolExecutor() as at_once:
        return [one for one in at_once.map(start, starts) if one is not None]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--harness", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    for name in ("--litellm", "--headroom", "--before"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--most", type=int, default=10_000, help="calls of each session")
    parser.add_argument("--every", type=float, default=0.0, help="least seconds between calls")
    parser.add_argument("--modes", nargs="+", default=["observe", "manage"])
    parser.add_argument("sessions", nargs="+")
    asked = parser.parse_args()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.harness, Path(folder) / "clock")
        systems = started(bench, stack, asked)
        begun = [one.spent() for one in systems]
        measure(bench, systems, asked.sessions, asked.most, asked.every)
        rest(systems, begun)
        say(machine())
        for one in systems:
            say(row(one, systems[0]))
            say(f"    {dict(one.marks)}")
        names = ("name", "latencies", "sums", "marks", "cpu")
        found = [{name: getattr(one, name) for name in names} for one in systems]
        asked.to.write_text(json.dumps(found))


@contextmanager
def _nothing(url: str) -> Iterator[Started]:
    yield url, ()


if __name__ == "__main__":
    main()
