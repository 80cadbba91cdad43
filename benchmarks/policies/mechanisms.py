"""What each mechanism of `balanced` adds, and what others would: reports/mechanisms.md.

    python -m benchmarks.policies.mechanisms FOLDER… [--out FILE]

Each is taken away or added alone, on all logs in the folders. Figures only, nothing of the logs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.figures import commit_and_date
from benchmarks.policies.choose import BALANCED, DRAWS, Row, measured, sums
from compaction.policies.policy import Policy, Step
from compaction.recitation.recite import Recite
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.outline import Outline

NEVER = 10_000
"""An age that no recorded session reaches."""


def without(strategy: str) -> Policy:
    """Return `balanced` without one of its steps."""
    return replace(BALANCED, steps=tuple(s for s in BALANCED.steps if s.strategy != strategy))


def payback(**given: Any) -> Policy:
    """Return `balanced` with other settings of payback."""
    steps = (
        Step(one.strategy, replace(one.parameters, **given)) if one.strategy == "payback" else one
        for one in BALANCED.steps
    )
    return replace(BALANCED, steps=tuple(steps))


def before(strategy: str, parameters: Any) -> Policy:
    """Return `balanced` with another step first."""
    return replace(BALANCED, steps=(Step(strategy, parameters), *BALANCED.steps))


MECHANISMS = {
    "`balanced`": BALANCED,
    "without excerpts on arrival": without("externalise"),
    "without offloading": without("payback"),
    "without summaries": without("compact"),
    "without waiting until it pays (`patience` 0)": payback(patience=0.0),
    "without what settles a reading (`done`, `settled`)": payback(done=NEVER, settled=NEVER),
    "readings never leave": payback(readings=NEVER, done=NEVER, settled=NEVER),
    "tool inputs never leave": payback(inputs=NEVER),
    "thinking never leaves": payback(thought=0),
    "without lines and names in stubs (`listed` 0)": payback(listed=0.0),
    "three times as many lines and names": payback(listed=0.09),
    "without the hour for tools and system prompt": replace(BALANCED, ttl="5m"),
    "and the agent's words leave after 8 steps": payback(said=8),
    "and dedupe": before("dedupe", Dedupe(within=4)),
    "and outlines": before("outline", Outline()),
    "and recitation": replace(BALANCED, recite=Recite()),
}


def apart(ours: Sequence[Row], others: Sequence[Row]) -> tuple[float, float]:
    """Return the bounds of 95 % of the differences in cost with read-backs, sessions resampled."""
    dice = random.Random(1)
    pairs = list(zip(ours, others, strict=True))
    found = []
    for _ in range(DRAWS):
        drawn = dice.choices(pairs, k=len(pairs))
        found.append(sums([b for _, b in drawn]).charged - sums([a for a, _ in drawn]).charged)
    found.sort()
    return found[int(DRAWS * 0.025)], found[int(DRAWS * 0.975) - 1]


def page(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the page."""
    by = {name: [row for row in rows if row.policy == name] for name in MECHANISMS}
    ours = by["`balanced`"]
    base = sums(ours)
    yield "# What each mechanism adds"
    yield ""
    yield (
        f"Written by `python -m benchmarks.policies.mechanisms` ({commit_and_date()}) on "
        f"{len(ours)} recorded sessions. Simulated:\nthe agent is assumed to behave as recorded. "
        "Each row changes one thing of `balanced`; columns as in [choosing](choosing.md). "
        "*Difference*:\nof the cost with read-backs, and 95 % of resampled sessions. An interval "
        "that holds 0 shows no effect.\n"
    )
    yield (
        "| policy | cost | with read-backs | difference | needs in context | in context or named "
        "| edits feasible | over 2 % costlier |"
    )
    yield "| --- " * 8 + "|"
    unchanged = []
    for name, found in by.items():
        one = sums(found)
        moved = "–"
        if found is not ours:
            low, high = apart(ours, found)
            if max(abs(low), abs(high)) < 0.0005:
                unchanged.append(name)
                continue
            moved = f"{one.charged - base.charged:+.3f} [{low:+.3f}, {high:+.3f}]"
        yield (
            f"| {name} | {one.cost:.3f} | {one.charged:.3f} | {moved} | {one.in_context:.3f} | "
            f"{one.named:.3f} | {one.feasible:.3f} | {one.costlier:.0%} |"
        )
    yield (
        f"\nChange nothing: {'; '.join(unchanged)}. The board has no row: "
        "simulations have none. [Its own figures](../../../docs/policies/strategies.md#boards)."
    )


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    folders = {str(folder): folder for folder in given.folder}
    text = "\n".join(page(measured(folders, MECHANISMS))) + "\n"
    if given.out:
        given.out.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
