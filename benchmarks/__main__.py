"""Run every benchmark in a process of its own: `python -m benchmarks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
from benchmarks.processes import machine, say  # noqa: E402

ALL = (
    "policies.engine", "policies.outline", "reviews.redact", "record.manifest", "web.start",
    "record.ingest", "peers", "live.steps", "live.agent", "live.live", "live.page", "live.stream",
    "replay.scrub", "dashboard.lists", "policies.recall", "record.planted", "lab.lab",
    "reviews.fact_ledger",
)  # fmt: skip
ON_LOGS = ("live.steps", "policies.recall", "record.planted", "lab.lab")


def main() -> int:
    """Run the named benchmarks, or all; return how many failed."""
    failed = []
    named = {name.rpartition(".")[2]: name for name in ALL}
    for name in [named.get(one, one) for one in sys.argv[1:]] or ALL:
        if name in ON_LOGS and not os.environ.get("CONTEXTLAB_CORPUS"):
            say(f"== {name}: left out, CONTEXTLAB_CORPUS names no folder of logs")
            continue
        say(f"== {name} ({machine()})")
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT, check=False)
        if done.returncode:
            failed.append(name)
        say()
    if failed:
        say(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
