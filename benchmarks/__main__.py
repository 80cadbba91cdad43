"""Run every benchmark in a process of its own: `python -m benchmarks [--write] [NAME …]`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
from benchmarks import figures  # noqa: E402
from benchmarks.processes import machine, say  # noqa: E402

ALL = (
    "policies.engine", "policies.outline", "reviews.redact", "record.manifest", "web.start",
    "web.pages", "record.ingest", "search.search", "peers", "live.steps", "live.agent", "live.live",
    "live.page", "live.stream", "replay.scrub", "replay.opening", "dashboard.lists",
    "dashboard.answers", "policies.recall", "record.planted", "lab.lab", "reviews.fact_ledger",
)  # fmt: skip
ON_LOGS = ("live.steps", "replay.opening", "policies.recall", "record.planted", "lab.lab")


def main() -> int:
    """Run the named benchmarks, or all; return how many failed or are worse than the kept figures.

    With --write their figures go into that page.
    """
    failed = []
    named = {name.rpartition(".")[2]: name for name in ALL}
    asked = [one for one in sys.argv[1:] if one != "--write"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "figures"
        place.touch()
        for name in [named.get(one, one) for one in asked] or ALL:
            if name in ON_LOGS and not os.environ.get("CONTEXTLAB_CORPUS"):
                say(f"== {name}: left out, CONTEXTLAB_CORPUS names no folder of logs")
                continue
            say(f"== {name} ({machine()})")
            run = [sys.executable, "-m", f"benchmarks.{name}"]
            collecting = {**os.environ, figures.COLLECTED: str(place)}
            if subprocess.run(run, cwd=ROOT, env=collecting, check=False).returncode:
                failed.append(name)
            say()
        found = figures.collected(place)
    if "--write" in sys.argv:
        figures.write(found)
    else:
        failed += figures.check(found)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
