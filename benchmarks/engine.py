"""What a step of the fold costs, and a whole session, beside langchain where it is installed.

    PYTHONPATH=. python benchmarks/engine.py
    PYTHONPATH=. python benchmarks/engine.py --repeat 5 --json figures.json

CPU milliseconds of one process, the best of several runs; made-up coding sessions of about 250
tokens a message, stubs and summaries made and counted with o200k. A step is one model call; its
cost is the mean over a session of so many messages, rare compactions included.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compaction import tokens
from compaction.extract import extractive
from compaction.fold import Arrival, advance, start
from compaction.plan import Means
from compaction.policy import PRESETS, Policy
from compaction.session import Session
from compaction.simulate import simulate
from tests.build import coding

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


def langchain(repeat: int) -> Figures:
    """trim_messages, the newest 12,000 tokens, at a step; empty where it is not installed."""
    if find_spec("langchain_core") is None:
        return {}
    from langchain_core.messages import AIMessage, HumanMessage, trim_messages

    figures: Figures = {}
    for messages in (1_000, 10_000):
        history = [
            (HumanMessage if n % 2 == 0 else AIMessage)(content=f"message {n} " + "word " * 200)
            for n in range(messages)
        ]

        def trim(history: list[Any] = history) -> object:
            return trim_messages(
                history, max_tokens=12_000, strategy="last", token_counter="approximate"
            )

        best = min(cpu(trim) for _ in range(repeat))
        figures[f"langchain trim_messages: a step at {messages:,} messages, ms"] = best
    return figures


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
        other = peers.get(f"langchain trim_messages: a step at {messages:,} messages, ms")
        mine = figures[f"offload-first: a step at {messages:,} messages, ms"]
        if other is not None:
            out.write(f"{other / mine:10.1f}  times faster than langchain at {messages:,}\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures | peers, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
