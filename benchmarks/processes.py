"""CPU time and memory of a process tree, from /proc, and their formatting."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> list[int]:
    """Return a process and its living descendants."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 (names are all we need)
        if fields := _stat(int(name)):
            children.setdefault(int(fields[1]), []).append(int(name))
    found, rest = [], [root]
    while rest:
        pid = rest.pop()
        found.append(pid)
        rest.extend(children.get(pid, ()))
    return found


def cpu_seconds(root: int) -> float:
    """Return user and system time of the tree, including ended descendants, to 10 ms."""
    # 11 to 14 after the name: utime, stime, and both of ended children that were waited for.
    return sum(sum(map(int, fields[11:15])) for pid in tree(root) if (fields := _stat(pid))) / TICK


def ran_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time of the living threads of processes, to the nanosecond."""
    return (
        sum(
            int(ran.read_text().split()[0])
            for pid in pids
            for ran in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )


def memory_mb(root: int) -> tuple[float, float]:
    """Return the resident memory of the tree in MB, and with shared pages counted once (PSS)."""
    resident = proportional = 0.0
    for pid in tree(root):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it ended meanwhile
        said = {line.split()[0]: line.split()[1] for line in lines[1:]}
        resident += int(said.get("Rss:", 0)) / 1024
        proportional += int(said.get("Pss:", 0)) / 1024
    return resident, proportional


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name; [0] is the state."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not below this share of them; nan if empty."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


def machine() -> str:
    """Describe the machine and its load in one line."""
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{os.cpu_count()} × {model}, Python {platform.python_version()}, load now {load}"


def say(line: str = "") -> None:
    """Print a line without buffering, to show progress."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
