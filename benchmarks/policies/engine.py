"""CPU time of a fold step and of a whole session, compared with libraries that shape a context.

    python -m benchmarks.policies.engine
    python -m benchmarks.policies.engine --repeat 5 --json figures.json
    python -m benchmarks.policies.engine --only balanced --only seven-principles

CPU milliseconds of one process, the best of several runs; made-up coding sessions of about 250
tokens a message; stubs, summaries and recitations are built and counted with o200k. A step is one
model call; its cost is the mean over a session of so many messages, rare compactions included.
Libraries are measured where `benchmarks/peers.py --install` put them (see `shaping.py`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
from benchmarks.policies.shaping import LENGTHS, Shaper, floors, others  # noqa: E402
from benchmarks.processes import machine, say  # noqa: E402
from compaction import tokens  # noqa: E402
from compaction.cache.economy import rates_of  # noqa: E402
from compaction.context.edits import context_at  # noqa: E402
from compaction.context.invariants import violations  # noqa: E402
from compaction.context.session import Session  # noqa: E402
from compaction.fold.fold import Arrival, advance, start  # noqa: E402
from compaction.policies.policy import Policy  # noqa: E402
from compaction.policies.presets import PRESETS  # noqa: E402
from compaction.prices.prices import price  # noqa: E402
from compaction.proposals.plan import Means  # noqa: E402
from compaction.simulation.simulate import simulate  # noqa: E402
from compaction.summaries.extract import extractive  # noqa: E402
from tests.build import coding  # noqa: E402

PRICED = "claude-sonnet-5"
AIM = 0.2
"""Milliseconds a step."""

REDUCED = ((100, 12_000), (500, 15_000), (1_000, 15_000))
"""Messages of 250 tokens, and the tokens that they come to (Shannon, docs/sources.md)."""


class Preset(NamedTuple):
    """CPU ms of a step at each length, of steps late in the longest session over early ones, and
    of a simulation of 1,000 and of 2,000 messages."""

    name: str
    at: list[float]
    late: float
    simulated: list[float]


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU milliseconds of one run."""
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1_000


def arrivals(session: Session) -> list[Arrival]:
    """Return the arrivals of each step of a session."""
    fresh: dict[int, list[Any]] = {}
    for block in session.blocks:
        fresh.setdefault(block.born, []).append(block)
    return [Arrival(c.step, tuple(fresh.get(c.step, ())), c.at) for c in session.calls]


def step(session: Session, policy: Policy) -> float:
    """Return the CPU milliseconds per step, averaged over a session."""
    return sum(fifths(session, policy)) / 5


def fifths(session: Session, policy: Policy) -> list[float]:
    """Return the CPU milliseconds per step, averaged over each fifth of a session."""
    steps = arrivals(session)
    rates = rates_of(price(session.model))
    state = start(policy, session.window, Means(tokens.count, extractive, rates=rates))
    size = len(steps) // 5

    def fold(some: list[Arrival]) -> None:
        last = state
        for arrival in some:
            last, _ = advance(last, arrival)

    return [cpu(lambda n=n: fold(steps[n * size : n * size + size])) / size for n in range(5)]


def whole(session: Session, policy: Policy) -> float:
    """Return the CPU milliseconds of simulating a policy over a session."""
    return cpu(lambda: simulate(session, policy, tokens.count))


def ours(named: list[str], repeat: int, sessions: dict[int, Session]) -> list[Preset]:
    """Measure our presets, the default also with the prices of a model."""
    found = []
    for name in named:
        models = ("", PRICED) if name == "balanced" else ("",)
        for model in models:
            made = {n: replace(s, model=model or s.model) for n, s in sessions.items()}
            policy = PRESETS[name]
            runs = {
                n: min((fifths(made[n], policy) for _ in range(repeat)), key=sum) for n in LENGTHS
            }
            simulated = [min(whole(made[n], policy) for _ in range(repeat)) for n in (1_000, 2_000)]
            longest = runs[LENGTHS[-1]]
            late = longest[-1] / longest[0]
            at = [sum(runs[n]) / 5 for n in LENGTHS]
            found.append(Preset(f"{name}, {model}" if model else name, at, late, simulated))
    return found


def report(presets: list[Preset], libraries: list[Shaper], plain: list[Shaper]) -> None:
    """Format one table, with each figure as a multiple of the default preset."""
    default = next((one.at for one in presets if one.name == "balanced"), presets[0].at)
    say(
        "a plan for one step, CPU ms, and times balanced; late: last fifth of 10,000 over the first"
    )
    say(f"{'':<44}{'at 1,000':>10}{'at 10,000':>11}{'times':>10}{'times':>10}{'late':>7}")
    for one in [*presets, *plain, *libraries]:
        times = "".join(f"{a / b:>10.2f}" for a, b in zip(one.at, default, strict=True))
        late = f"{one.late:>7.2f}" if isinstance(one, Preset) else ""
        over = "" if not isinstance(one, Preset) or max(one.at) <= AIM else f"  over {AIM}"
        say(f"{one.name:<44}{one.at[0]:>10.3f}{one.at[1]:>11.3f}{times}{late}{over}")
    say()
    say("a plan at every step of a session, CPU ms (ours: a simulation, 250K tokens at 500 steps)")
    say(f"{'':<44}{'500 steps':>10}{'1,000':>11}{'growth':>8}")
    every = [(one.name, one.simulated) for one in presets]
    every += [(one.name, one.sessions) for one in libraries if one.sessions is not None]
    for name, (short, long) in every:
        say(f"{name:<44}{short:>10.1f}{long:>11.1f}{long / short:>8.2f}")


def reductions() -> dict[str, float]:
    """Return the published reductions under `sliding-window` and the broken invariants."""
    say()
    say("sliding-window: the published reductions")
    figures: dict[str, float] = {}
    for messages, most in REDUCED:
        session = coding(messages, 470)
        given = sum(block.tokens for block in session.blocks)
        run = simulate(session, PRESETS["sliding-window"], tokens.count)
        end = max(revision.tokens_after for revision in run.revisions)
        known = {entry.block.id for entry in run.entries}
        broken = sum(len(violations(context_at(run.entries, s.step), known)) for s in run.steps)
        kept = known >= {block.id for block in session.blocks}
        say(
            f"{messages:>6,} messages, {given:,} tokens -> {end:,} at most ({1 - end / given:.1%}"
            f" less; published {most:,}); invariants broken: {broken}, refusals: "
            f"{len(run.refusals)}, every original kept: {'yes' if kept else 'NO'}"
        )
        figures[f"{messages:,} messages: tokens after a compaction"] = end
        figures[f"{messages:,} messages: invariants broken"] = broken
    return figures


def counting(repeat: int) -> float:
    """Return the MB of text counted per CPU second: our own sources, in pieces of 1,000 code
    points.
    """
    text = "".join(file.read_text() for file in sorted((ROOT / "compaction").rglob("*.py")))
    pieces = [text[start : start + 1_000] for start in range(0, len(text), 1_000)]
    spent = min(cpu(lambda: [tokens.count(piece) for piece in pieces]) for _ in range(repeat))
    say()
    say(f"counting tokens: {len(text.encode()) / 1_000 / spent:.1f} MB a CPU second")
    return len(text.encode()) / 1_000 / spent


def main() -> None:
    """Print the figures, and write them to a file on request."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", choices=[*PRESETS], default=[])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    tokens.count("load the vocabulary before anything is timed")
    sessions = {n: coding(n, 470) for n in (*LENGTHS, 2_000)}
    presets = ours(asked.only or [*PRESETS], asked.repeat, sessions)
    plain, libraries = floors(sessions, asked.repeat), others(asked.repeat)
    say(f"{machine()}, best of {asked.repeat}")
    report(presets, libraries, plain)
    figures = reductions() | {"counting tokens: MB a CPU second": counting(asked.repeat)}
    for one in [*presets, *plain, *libraries]:
        for messages, value in zip(LENGTHS, one.at, strict=True):
            figures[f"{one.name}: a step at {messages:,} messages, ms"] = value
        over = one.simulated if isinstance(one, Preset) else one.sessions
        for steps, value in zip((500, 1_000), over or (), strict=bool(over)):
            figures[f"{one.name}: a plan at each of {steps:,} steps, ms"] = value
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
