"""A small project, and what a model does with it: the same for every agent."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

MODULES = 17
OLD, NEW = "weight_of", "mass_of"
TASK = f"Rename {OLD} to {NEW} in all modules of this project, and check each of them."
SUBTASK = "SUBTASK: report how many modules there are, and what the last one defines."
REPORT = "All modules are renamed and checked."
SUB_REPORT = f"There are {MODULES} modules; the last one defines a table of parcels."


@dataclass(frozen=True)
class Act:
    """One thing that the model does at a step: read, search, edit, check, or ask a sub-agent."""

    kind: str
    path: str = ""


def project(folder: Path) -> None:
    """Write the modules: tables of parcels, and a function that is defined and used in each."""
    dice = random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(MODULES):
        rows = [
            f'    ("{dice.randrange(16**8):08x}", {dice.randrange(9000)}, "dock {row % 9}"),'
            for row in range(260)
        ]
        lines = [f'"""Parcels of harbor {number}."""', "", "PARCELS = [", *rows, "]", "", ""]
        lines += [f"def {OLD}(parcel):", "    return parcel[1]", "", ""]
        lines += ["TOTAL = sum(", f"    {OLD}(parcel) for parcel in PARCELS", ")", ""]
        (folder / f"harbor_{number:02}.py").write_text("\n".join(lines))


def acts(folder: Path) -> list[Act]:
    """All steps of the task, in order; one of them asks a sub-agent."""
    found: list[Act] = []
    for number in range(MODULES):
        path = str(folder / f"harbor_{number:02}.py")
        found += [Act(kind, path) for kind in ("read", "search", "edit", "check")]
    found.insert(len(found) // 3, Act("delegate"))
    return found


def finished(folder: Path) -> bool:
    """Whether every module was renamed, and nothing else changed."""
    texts = [path.read_text() for path in sorted(folder.glob("harbor_*.py"))]
    return len(texts) == MODULES and all(
        OLD not in text and text.count(NEW) == 2 and len(text.splitlines()) == 273 for text in texts
    )
