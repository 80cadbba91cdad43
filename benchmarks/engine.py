"""What a step of the fold costs, and a whole session, beside langchain where it is installed.

    python benchmarks/engine.py
    python benchmarks/engine.py --repeat 5 --json figures.json

CPU milliseconds of one process, the best of several runs; made-up coding sessions of about 250
tokens a message, stubs and summaries made and counted with o200k. A step is one model call; its
cost is the mean over a session of so many messages, rare compactions included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers import python_of  # noqa: E402
from compaction import tokens  # noqa: E402
from compaction.extract import extractive  # noqa: E402
from compaction.fold import Arrival, advance, start  # noqa: E402
from compaction.plan import Means  # noqa: E402
from compaction.policy import Policy  # noqa: E402
from compaction.presets import PRESETS  # noqa: E402
from compaction.session import Session  # noqa: E402
from compaction.simulate import simulate  # noqa: E402
from tests.build import coding  # noqa: E402

Figures = dict[str, float]


def cpu(work: Callable[[], object]) -> float:
    """CPU milliseconds of one run."""
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1_000


def arrivals(session: Session) -> list[Arrival]:
    """What each step of a session brings."""
    fresh: dict[int, list[Any]] = {}
    for block in session.blocks:
        fresh.setdefault(block.born, []).append(block)
    return [Arrival(c.step, tuple(fresh.get(c.step, ())), c.at) for c in session.calls]


def step(session: Session, policy: Policy) -> float:
    """CPU milliseconds of a step, amortised over a session."""
    steps = arrivals(session)
    state = start(policy, session.window, Means(tokens.count, extractive))

    def fold() -> None:
        last = state
        for arrival in steps:
            last, _ = advance(last, arrival)

    return cpu(fold) / len(steps)


def ours(repeat: int) -> Figures:
    """Our figures, by name."""
    figures: Figures = {}
    sessions = {n: coding(n, 470) for n in (1_000, 2_000, 10_000)}
    for name, policy in PRESETS.items():
        for messages in (1_000, 10_000):
            session = sessions[messages]
            best = min(step(session, policy) for _ in range(repeat))
            figures[f"{name}: a step at {messages:,} messages, ms"] = best
        whole = {}
        for messages in (1_000, 2_000):
            session = sessions[messages]
            runs = [_whole(session, policy) for _ in range(repeat)]
            whole[messages] = min(runs)
            steps = len(session.calls) - 1
            figures[f"{name}: a plan at each of {steps:,} steps, ms"] = whole[messages]
        figures[f"{name}: twice the steps cost, times"] = whole[2_000] / whole[1_000]
    return figures


def _whole(session: Session, policy: Policy) -> float:
    return cpu(lambda: simulate(session, policy, tokens.count))


_LANGCHAIN = """
import json, sys, time
from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately as count

def history(length):
    made = [HumanMessage("Mend it.")]
    for n in range(length // 2):
        call = {"name": "Read", "args": {"path": f"f{n}.py"}, "id": f"c{n}"}
        made.append(AIMessage(f"message {n}", tool_calls=[call]))
        made.append(ToolMessage("word " * 380, tool_call_id=f"c{n}"))
    return made

def trim(messages):
    trim_messages(messages, max_tokens=12_000, strategy="last", token_counter="approximate")

def clear(messages):
    ClearToolUsesEdit(trigger=12_000, keep=3).apply(messages, count_tokens=count)

figures = {}
for name, work in (("trim_messages", trim), ("ClearToolUsesEdit", clear)):
    for length in (1_000, 10_000):
        taken = []
        for _ in range(int(sys.argv[1])):
            messages = history(length)
            begun = time.process_time()
            work(messages)
            taken.append((time.process_time() - begun) * 1000)
        figures[f"langchain {name}: a step at {length:,} messages, ms"] = min(taken)
print(json.dumps(figures))
"""


def langchain(repeat: int) -> Figures:
    """trim_messages and clearing tool results, at a step; empty where it is not installed."""
    python = python_of("langchain")
    if not python:
        return {}
    said = subprocess.run(
        [python, "-c", _LANGCHAIN, str(repeat)], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return dict(json.loads(said))


def main() -> None:
    """Print the figures, and write them where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    tokens.count("load the vocabulary before anything is timed")
    figures = ours(asked.repeat)
    peers = langchain(asked.repeat)
    out = sys.stdout
    for name, value in (figures | peers).items():
        out.write(f"{value:10.3f}  {name}\n")
    if not peers:
        out.write("langchain is not installed here: nothing to compare with\n")
    for messages in (1_000, 10_000):
        mine = figures[f"offload-first: a step at {messages:,} messages, ms"]
        for name, value in peers.items():
            if name.endswith(f"at {messages:,} messages, ms"):
                out.write(f"{value / mine:10.1f}  times offload-first: {name}\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures | peers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
