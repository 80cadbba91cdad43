"""How `balanced` was chosen, by cross-validation: the tables in reports/choosing.md.

    python -m benchmarks.policies.choose FOLDER [--fresh FOLDER…] [--out FILE]

Every folder in FOLDER that holds logs is a repository, and a fold: the settings that are cheapest
with read-backs charged, among those that keep enough needs and edits, are chosen on the others and
measured on it. `--fresh` names logs on which nothing was chosen: there `balanced` is measured as it
is, and on sessions of every length. Figures only, nothing of the logs. Two processes.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

import django

django.setup()

from benchmarks.figures import commit_and_date  # noqa: E402
from benchmarks.policies.frontier import Point, picture  # noqa: E402
from benchmarks.policies.presets import sessions_in, sources_of  # noqa: E402
from compaction.policies.policy import Policy, Step  # noqa: E402
from compaction.policies.presets import PRESETS  # noqa: E402
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures  # noqa: E402

LEAST = 0.955
"""Needs in context and edits feasible that settings must keep on the sessions chosen on."""
DRAWS = 1_000
"""Resamplings of sessions for an interval."""
BALANCED = PRESETS["balanced"]
PICTURE = "frontier.svg"
GRID = {"patience": (6, 10, 16), "done": (8, 20), "settled": (5, 12), "inputs": (30, 45)}


class Row(NamedTuple):
    """One session under one policy; money in micro-dollars, 0 without a price."""

    fold: str
    policy: str
    steps: int
    cost: int
    recorded: int
    charged: int
    needs: int
    in_context: float
    in_context_recorded: float
    named: float
    edits: int
    feasible: float
    feasible_recorded: float
    said: int
    said_in_context: float
    oracle: int


def candidates() -> dict[str, Policy]:
    """Return `balanced` with all settings of the grid, by those settings."""
    found = {}
    for values in product(*GRID.values()):
        given = dict(zip(GRID, values, strict=True))
        steps = (
            Step(name, replace(parameters, **given) if name == "payback" else parameters)
            for name, parameters in ((one.strategy, one.parameters) for one in BALANCED.steps)
        )
        settings = ", ".join(f"{setting} {value}" for setting, value in given.items())
        found[settings] = replace(BALANCED, name="tried", steps=tuple(steps))
    return found


def rows_of(work: tuple[str, str, Path, dict[str, Policy]]) -> list[Row]:
    """Return the figures of one session under every policy."""
    fold, name, path, policies = work
    recording = next(one for found, _, _, one in sessions_in(path) if found == name)
    lived = recorded_figures(recording)
    rows = []
    for title, policy in policies.items():
        made = figures_of(recording, policy).figures
        priced = made["cost_microusd"] and made["cost_recorded_microusd"]
        money = (
            (
                made["cost_microusd"],
                made["cost_recorded_microusd"],
                made["cost_microusd"] + made["read_backs_microusd"],
            )
            if priced
            else (0, 0, 0)
        )
        rows.append(
            Row(
                fold,
                title,
                made["steps"],
                *money,
                made["needs"],
                made["in_context"],
                lived["in_context"],
                made["named"],
                made["edits"],
                made["edits_feasible"],
                lived["edits_feasible"],
                made["said"],
                made["said_in_context"],
                lived["oracle_microusd"] or 0,
            )
        )
    return rows


def measured(folds: dict[str, Path], policies: dict[str, Policy]) -> list[Row]:
    """Return all rows of the sessions in some folders."""
    work = [
        (fold, name, path, policies)
        for fold, folder in folds.items()
        for name, path in sources_of([folder])
    ]
    with ProcessPoolExecutor(2) as pool:
        return [row for rows in pool.map(rows_of, work) for row in rows]


class Sums(NamedTuple):
    """Shares of several sessions."""

    cost: float
    charged: float
    median: float
    in_context: float
    named: float
    feasible: float
    words: float
    oracle: float
    costlier: float
    worst: float


def sums(rows: Sequence[Row]) -> Sums:
    """Sum sessions of one policy."""
    priced = [row for row in rows if row.recorded]
    recorded = sum(row.recorded for row in priced) or 1
    ratios = sorted(row.cost / row.recorded for row in priced) or [1.0]
    needs = sum(row.needs for row in rows) or 1
    lived = sum(row.feasible_recorded * row.edits for row in rows) or 1
    return Sums(
        sum(row.cost for row in priced) / recorded,
        sum(row.charged for row in priced) / recorded,
        ratios[len(ratios) // 2],
        sum(row.in_context * row.needs for row in rows) / needs,
        sum((row.in_context + row.named) * row.needs for row in rows) / needs,
        sum(row.feasible * row.edits for row in rows) / lived,
        sum(row.said_in_context * row.said for row in rows) / (sum(row.said for row in rows) or 1),
        sum(row.recorded - row.cost for row in priced)
        / (sum(row.recorded - row.oracle for row in priced) or 1),
        sum(ratio > 1.02 for ratio in ratios) / len(ratios),
        ratios[-1],
    )


def held_out(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """Yield each fold, the settings chosen without it, and its rows under them."""
    names = list(dict.fromkeys(row.policy for row in rows))
    for fold in sorted({row.fold for row in rows}):
        kept = []
        for name in names:
            found = sums([row for row in rows if row.policy == name and row.fold != fold])
            if found.in_context >= LEAST and found.feasible >= LEAST:
                kept.append((found.charged, name))
        if not kept:
            sys.exit(
                f"No settings keep {LEAST:.1%} of needs and edits without {fold}. Name a folder "
                "with more repositories."
            )
        chosen = min(kept)[1]
        yield fold, chosen, [row for row in rows if (row.policy, row.fold) == (chosen, fold)]


def interval(rows: Sequence[Row]) -> tuple[Sums, Sums]:
    """Return the bounds of 95 % of resampled sums."""
    dice = random.Random(1)
    drawn = [sums(dice.choices(rows, k=len(rows))) for _ in range(DRAWS)]
    ordered = [sorted(values) for values in zip(*drawn, strict=True)]
    low, high = int(DRAWS * 0.025), int(DRAWS * 0.975) - 1
    return Sums(*(one[low] for one in ordered)), Sums(*(one[high] for one in ordered))


HEAD = (
    "cost | with read-backs | median session | needs in context | edits feasible"
    " | of the oracle's saving | over 2 % costlier | costliest |"
)


def line(name: str, found: Sums) -> str:
    """Format a row of a table."""
    values = (found.cost, found.charged, found.median, found.in_context, found.feasible)
    shares = " | ".join(f"{value:.3f}" for value in (*values, found.oracle))
    return f"| {name} | {shares} | {found.costlier:.1%} | {found.worst:.2f} |"


def page(chosen_on: Sequence[Row], fresh: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# How the default policy was chosen"
    yield ""
    yield f"![Cost with read-backs and needs in context, by policy]({PICTURE})\n"
    yield (
        f"Written by `python -m benchmarks.policies.choose` ({commit_and_date()}), simulated: "
        "the agent is assumed to behave as\nrecorded. Cost is against the sessions as recorded, "
        "vendor compactions included; columns:\n"
        "[sources](../../../docs/sources.md#needed-later-recall)."
    )
    held = [row for _, _, rows in held_out(chosen_on) for row in rows]
    low, high = interval(held)
    yield f"\n## Held-out sessions ({len(held)})\n"
    yield (
        f"Chosen on all other repositories: the cheapest with read-backs of {len(candidates())} "
        f"settings ({', '.join(GRID)}) that keep {LEAST:.1%} of needs\nand edits; which to try "
        "was known from earlier work on some of these sessions. The last row is not held out.\n"
    )
    yield f"| settings | {HEAD}"
    yield "| --- " * 9 + "|"
    yield line("chosen without the session's repository", sums(held))
    yield line("95 % from", low)
    yield line("95 % to", high)
    ours = {name for name, policy in candidates().items() if policy.steps == BALANCED.steps}
    for name in sorted(ours):
        yield line(f"`balanced`: {name}", sums([row for row in chosen_on if row.policy == name]))
    if fresh:
        count = len(fresh) // len({row.policy for row in fresh})
        yield f"\n## Sessions that nothing was chosen on ({count})\n"
        yield f"| policy, sessions | {HEAD}"
        yield "| --- " * 9 + "|"
        for name in dict.fromkeys(row.policy for row in fresh):
            of = [row for row in fresh if row.policy == name]
            parts = {
                "all": of,
                "under 30 steps": [row for row in of if row.steps < 30],
                "30 steps and more": [row for row in of if row.steps >= 30],
            }
            for title, part in parts.items():
                yield line(f"`{name}`, {title} ({len(part)})", sums(part))


def points(rows: Sequence[Row]) -> Iterator[Point]:
    """Yield the points of the picture: recorded, the oracle, every policy."""
    by = {name: [row for row in rows if row.policy == name] for name in {r.policy for r in rows}}
    one = [row for row in next(iter(by.values())) if row.recorded]
    needs = sum(row.needs for row in one)
    lived = sum(row.in_context_recorded * row.needs for row in one) / needs
    recorded = sum(row.recorded for row in one)
    yield Point("recorded", 1.0, lived, "bound")
    yield Point("oracle", sum(row.oracle for row in one) / recorded, 1.0, "bound")
    for name, found in sorted(by.items()):
        whole = sums(found)
        kind = "preset" if name.startswith("`") else "tried"
        yield Point(name.strip("`"), whole.charged, whole.in_context, kind)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fresh", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    logs = (path for path in given.folder.rglob("*") if path.suffix in (".jsonl", ".json"))
    folders = {str(folder): folder for folder in sorted({path.parent for path in logs})}
    if not folders:
        parser.error(f"no log below {given.folder}: name a folder with a folder per repository")
    rows = [row._replace(fold=Path(row.fold).name) for row in measured(folders, candidates())]
    ours = {name: PRESETS[name] for name in ("balanced", "balanced-lean")}
    fresh = measured({str(folder): folder for folder in given.fresh}, ours)
    text = "\n".join(page(rows, fresh)) + "\n"
    if given.out:
        given.out.write_text(text)
        shown = measured(folders, {f"`{name}`": policy for name, policy in PRESETS.items()})
        given.out.with_name(PICTURE).write_text(picture(points([*rows, *shown])))
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
