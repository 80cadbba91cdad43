"""Status queries in real sessions: how many there are, are repeated, or ask what a dashboard tells.

    CONTEXTLAB_CORPUS=/path/to/logs python -m benchmarks.policies.status

Reads every log below the folder and takes sessions of 10 steps or more. Prints counts of calls, and
tokens times steps for which the results of queries stand, as recorded and under `replace`. Tokens
are a quarter of the code points. Recorded agents did not see a dashboard, so whether it saves calls
cannot be measured here. Writes nothing of the logs.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from benchmarks.policies.recall import session_of
from compaction.context.edits import Entry
from compaction.context.session import Session
from compaction.policies.policy import Policy, Step
from compaction.seen.reading import READING, reads
from compaction.seen.repeats import Repeats
from compaction.simulation.simulate import simulate
from compaction.strategies.replace import STATUS, Replace
from sessions.importers import NotALog, parse

STEPS = 10
AROUND = ("cd", "echo", "head", "tail", "wc", "grep")
SHOWN_ANYWAY = (
    "browser_tab_list", "browser_tabs", "get_status", "git status", "list_processes",
    "list_sessions", "list_terminals", "pwd", "status", "tasklist", "todo_read", "todoread",
)  # fmt: skip
"""What a dashboard tells: folder, changed files, terminals, tabs, list of what to do."""
NARROW = (*(name for name in STATUS if name not in READING), "git status", "git log", "git diff",
          "pwd", "ls", *AROUND)  # fmt: skip
"""Queries that show no file's text."""


def rough(text: str) -> int:
    return len(text) // 4 + 1


def add(session: Session, sums: Counter[str]) -> None:
    """Add the figures of one session."""
    uses = {block.tool_call: block for block in session.blocks if block.type == "tool_use"}
    results = [block for block in session.blocks if block.type == "tool_result"]
    known = Repeats()
    for block in session.blocks:
        known.add(block)
    older = {one for one, _ in known.pairs}
    sums["sessions"] += 1
    sums["calls"] += len(uses)
    sums["results over 18,000 tokens"] += sum(block.tokens > 18_000 for block in results)
    for name, tools in (("status queries", STATUS), ("of these without a file's text", NARROW)):
        found = [block for block in results if reads(uses.get(block.tool_call), tools)]
        sums[name] += len(found)
        sums[f"{name}, repeated later"] += sum(block.position in older for block in found)
    for block in results:
        use = uses.get(block.tool_call)
        sums["ask what a dashboard tells"] += reads(use, (*SHOWN_ANYWAY, *AROUND)) and not reads(
            use, AROUND
        )
    last = session.calls[-1].step
    asked = {block.id for block in results if reads(uses.get(block.tool_call), STATUS)}
    for name, steps in (("recorded", ()), ("replaced", (Step("replace", Replace()),))):
        run = simulate(session, Policy("measured", steps=steps), rough)
        stood = (entry for entry in run.entries if _of(entry) in asked)
        sums[f"tokens of queries in context, {name}"] += sum(_stood(one, last) for one in stood)
        sums[f"tokens sent, {name}"] += run.sent


def _of(entry: Entry) -> str:
    return entry.block.refs[0] if entry.block.refs else entry.block.id


def _stood(entry: Entry, last: int) -> int:
    until = entry.to_step if entry.to_step is not None else last + 1
    return entry.block.tokens * max(until - entry.from_step, 0)


def main() -> int:
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CONTEXTLAB_CORPUS", "")
    if not folder:
        sys.exit("name a folder, or set CONTEXTLAB_CORPUS")
    sums: Counter[str] = Counter()
    seen: set[str] = set()
    for path in sorted(one for one in Path(folder).rglob("*") if one.is_file()):
        try:
            log = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for found in log.sessions:
            session = session_of(found, rough)
            if session and found.external_id not in seen and len(session.calls) >= STEPS:
                seen.add(found.external_id)
                add(session, sums)
    for name, value in sums.items():
        sys.stdout.write(f"{name}: {value:,}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
