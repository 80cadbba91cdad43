"""Our contexts beside other systems on the same recorded requests: reports/peers.md.

    python -m benchmarks.policies.peers measure --harness H --python P --to FOLDER SESSION ...
    python -m benchmarks.policies.peers page FOLDER ...

`--harness` is the folder of a harness that replays Claude Code sessions (`harness.py`, `libs.py`
and `shift/`; not part of this repository) and `--python` an interpreter with what it needs
(aiohttp, psutil, tiktoken, bpe-openai, httpx2) and with the peers (headroom-ai[proxy], llmslim,
liquid-memory-proxy, ctx-gate). A peer that does not start is left out, with its reason on stderr.
ctx-gate has no setting for its provider's address: it must be changed to 127.0.0.1:8899 in its
`src/proxy/server.py`. `page` writes a table for each folder of results, in place of the old ones.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.server import ROOT, served
from tests.conftest import wait_until

UPSTREAM = "http://127.0.0.1:8899"
START_SECONDS = 90.0
OURS = ("balanced", "balanced_lean", "balanced_binding", "balanced_lean_binding")
IN_PROCESS = {
    "clear_tool_uses": ("Anthropic `clear_tool_uses`, approximated", "defaults"),
    "headroom_compress": ("headroom-ai, `compress()`", "0.42.0"),
}
"""Functions of the harness's `libs.py`: names and versions."""


class Proxied(NamedTuple):
    """A proxy to compare with: its command in the interpreter's folder, and its port."""

    name: str
    version: str
    port: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}


PROXIES = (
    Proxied(
        "headroom-ai, proxy",
        "0.42.0",
        8787,
        ("headroom", "proxy", "--port", "8787"),
        {"ANTHROPIC_TARGET_API_URL": UPSTREAM, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    Proxied(
        "llmslim",
        "0.11.2",
        8788,
        ("llmslim", "proxy", "--port", "8788", "--upstream", UPSTREAM, "--db", "{home}/slim.db"),
    ),
    Proxied(
        "liquid-memory-proxy, transparent",
        "2.3.1",
        8789,
        ("liquid-memory", "start", "--host", "127.0.0.1", "--port", "8789"),
        {"ANTHROPIC_API_BASE": UPSTREAM, "LM_PROXY_MODE": "transparent"},
    ),
    Proxied(
        "ctx-gate",
        "0.1.2",
        8790,
        ("ctx-gate", "--host", "127.0.0.1", "--port", "8790", "serve", "--provider", "claude"),
    ),
)


class Bench:
    """The harness, with a clock that those it measures follow."""

    def __init__(self, harness: Path, python: Path, to: Path, sessions: Sequence[str]) -> None:
        self.harness, self.python, self.to, self.sessions = harness, python, to, sessions
        self.clock = to / "clock"

    def shifted(self, *more: Path) -> dict[str, str]:
        """The environment of a process whose clock follows the recording."""
        self.clock.write_bytes(struct.pack("d", 0.0))
        paths = os.pathsep.join(str(one) for one in (self.harness / "shift", *more))
        return {"PYTHONPATH": paths, "REPLAY_CLOCK": str(self.clock)}

    def run(self, name: str, version: str, *more: str, **environment: str) -> None:
        """Measure one system into a file of its own."""
        out = self.to / f"{name.replace('/', '-')}.json"
        command = [str(self.python), str(self.harness / "harness.py"), "--name", name]
        command += ["--version", version, "--out", str(out), *more, *self.sessions]
        subprocess.run(
            command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True
        )

    def clocked(self) -> tuple[str, str]:
        """Arguments that move the clock."""
        return "--clock", str(self.clock)


def measure(bench: Bench) -> None:
    """Measure all systems, one after the other."""
    bench.run("as recorded", "")
    for function, (name, version) in IN_PROCESS.items():
        bench.run(name, version, "--library", f"{bench.harness / 'libs.py'}:{function}")
    for one in PROXIES:
        with _running(bench, one) as answers:
            if answers:
                at = f"http://127.0.0.1:{one.port}"
                bench.run(one.name, one.version, "--proxy", at, *bench.clocked())
    with tempfile.TemporaryDirectory() as folder:
        given = bench.shifted(ROOT)
        with served(Path(folder), **given) as lab:
            address = f"http://127.0.0.1:{lab.server.port}"
            for function in OURS:
                library = f"{ROOT / 'benchmarks/policies/proxied.py'}:{function}"
                bench.run(
                    _called(function),
                    commit(),
                    *("--library", library, *bench.clocked()),
                    PYTHONPATH=str(ROOT),
                    CONTEXTLAB_URL=address,
                    CONTEXTLAB_TOKEN=lab.token,
                )


def _called(function: str) -> str:
    policy, binding, _ = function.partition("_binding")
    more = ", on a model that binds thinking" if binding else ""
    return f"ContextLab `{policy.replace('_', '-')}`{more}"


@contextmanager
def _running(bench: Bench, one: Proxied) -> Iterator[bool]:
    """Start a proxy; False if it does not answer."""
    with tempfile.TemporaryDirectory() as home, (bench.to / "proxy.log").open("a") as log:
        first, *rest = (part.format(home=home) for part in one.command)
        environment = {**os.environ, **bench.shifted(), "HOME": home, **one.environment}
        started = subprocess.Popen(
            [str(bench.python.parent / first), *rest], env=environment, stdout=log, stderr=log
        )
        try:
            wait_until(lambda: started.poll() is not None or _answers(one.port), START_SECONDS)
            if started.poll() is not None:
                print(f"{one.name} did not start: see {log.name}", file=sys.stderr)
            yield started.poll() is None
        finally:
            started.send_signal(signal.SIGTERM)
            started.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def commit() -> str:
    """The commit that is measured."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


HEAD = (
    "| system | tokens | cost | with read-backs "
    "| needs in context | edits feasible | thinking after changes | invalid |\n|" + " --- |" * 8
)
TABLES = "## Measured"


def row(found: Mapping[str, Any]) -> str:
    """A result of the harness as a row: shares of the session as recorded, then requests."""
    sums = {**dict.fromkeys(("edit_ok", "bound", "invalid"), 0), **found["sums"]}
    pairs = (("tokens", "tokens0"), ("cost", "cost0"))
    figures = [sums[one] / max(sums[of], 1) for one, of in pairs]
    figures += [charged(sums), sums["inc"] / max(sums["needs"], 1)]
    figures += [sums["edit_ok"] / max(sums["edits"], 1)]
    shown = [name(found), *(f"{one:.3f}" for one in figures)]
    return f"| {' | '.join([*shown, str(sums['bound']), str(sums['invalid'])])} |"


def name(found: Mapping[str, Any]) -> str:
    """The system with its version."""
    return f"{found['name']} {found['version']}".strip()


def changes(found: Mapping[str, Any]) -> bool:
    """Whether a system sends other tokens than were recorded."""
    return abs(found["sums"]["tokens"] / max(found["sums"]["tokens0"], 1) - 1) >= 0.0005


def charged(sums: Mapping[str, float]) -> float:
    """Cost with one more call, at the mean cost of a call, for each need that is not in context.

    An upper bound, since the harness does not say how many of them are of one step.
    """
    missing = min(sums["needs"] - sums["inc"], sums["requests"])
    return sums["cost"] * (1 + missing / max(sums["requests"], 1)) / max(sums["cost0"], 1)


def page(folders: Sequence[Path], before: str) -> str:
    """The page with new tables, one per folder."""
    written = f"Written at {commit()}, {datetime.now(UTC).date()}."
    parts = [before.partition(TABLES)[0] + TABLES, written]
    for number, folder in enumerate(folders, 1):
        found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        found.sort(key=lambda one: (one["sums"]["cost"] / one["sums"]["cost0"], one["name"]))
        first = found[0]
        size = f"{len(first['sessions'])} sessions, {first['sums']['requests']} requests"
        title = f"### Set {number}: {size}"
        parts += [title, "\n".join([HEAD, *map(row, filter(changes, found))])]
        unchanged = [name(one) for one in found if not changes(one)]
        parts += [f"Change nothing: {'; '.join(unchanged)}."] if unchanged else []
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    measuring, paging = kinds.add_parser("measure"), kinds.add_parser("page")
    for name in ("--harness", "--python", "--to"):
        measuring.add_argument(name, type=Path, required=True)
    measuring.add_argument("sessions", nargs="+")
    paging.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    if given.kind == "measure":
        given.to.mkdir(parents=True, exist_ok=True)
        measure(Bench(given.harness, given.python, given.to, given.sessions))
    else:
        out = ROOT / "benchmarks/policies/reports/peers.md"
        out.write_text(page(given.folders, out.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
