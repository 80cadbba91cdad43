"""Figures of benchmarks: kept in figures.json, checked against it, summed up in docs/speed.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import say

PAGE = Path(__file__).resolve().parent.parent / "docs" / "speed.md"
KEPT = Path(__file__).with_suffix(".json")
"""Value, goal, whether more is better, and commit and date of each figure, by its name."""
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
TOLERANCE = 1.3
"""How much worse a figure may be than the kept one before it fails: machines differ from hour to
hour."""

PAGES = {"replay-page": "replay pages", "page": "other pages"}
"""Rows of the pages that reach their goals, by how their figures' names begin."""

COLLECTED = "CONTEXTLAB_BENCH_FIGURES"
"""Environment variable with the file that figures of a run are collected in."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, and the goal: at most that much, or at least if `more` is better."""

    name: str
    value: float
    goal: float
    more: bool = False

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.value >= self.goal if self.more else self.value <= self.goal

    def worse_than(self, stated: float) -> bool:
        """Whether the value is worse than a stated one, beyond the tolerance."""
        if self.more:
            return self.value * TOLERANCE < stated
        # A slope of memory may be below zero.
        return self.value > stated + abs(stated) * (TOLERANCE - 1)

    @property
    def group(self) -> str:
        """What the page shows in one row: a measure of pages, of sessions of all lengths."""
        subject, colon, measure = self.name.partition(": ")
        kind = PAGES.get(subject.partition(" ")[0]) if self.reached else None
        several = kind or subject
        if size := re.search(r", \d[\d,]* sessions$", subject):
            several = ("other answers" if self.reached else subject.split(", ")[0]) + size[0]
        else:
            several = re.sub(r", .*| \d[\d,]* (to|messages|synthetic) .*", "", several)
        return several + colon + measure


def figure(name: str, value: float, *, at_most: float = 0, at_least: float = 0) -> None:
    """Say a figure with its goal, and collect it for the table."""
    found = Figure(name, value, at_least or at_most, more=bool(at_least))
    sign = "at least" if found.more else "at most"
    say(f"{name}: {value:,.4g} (goal: {sign} {found.goal:,g})")
    if place := os.environ.get(COLLECTED):
        with Path(place).open("a") as file:
            file.write(json.dumps([name, value, found.goal, found.more]) + "\n")


def collected(place: Path) -> list[Figure]:
    """The figures of a run."""
    return [Figure(*json.loads(line)) for line in place.read_text().splitlines()]


def kept() -> dict[Figure, str]:
    """The figures of earlier runs, with commit and date."""
    rows = json.loads(KEPT.read_text())
    return {Figure(name, *row): origin for name, (*row, origin) in rows.items()}


def check(figures: list[Figure]) -> list[str]:
    """Say each figure that is worse than the kept one; return their names."""
    stated = {one.name: one.value for one in kept()}
    worse = [one for one in figures if one.name in stated and one.worse_than(stated[one.name])]
    for one in worse:
        say(f"worse than {KEPT.name}: {one.name}: {one.value:,.4g}, was {stated[one.name]:,g}")
    return [one.name for one in worse]


def write(figures: list[Figure]) -> None:
    """Keep the figures of this run with commit and date, beside the others, and write the page."""
    now = {one.name for one in figures}
    found = {one: origin for one, origin in kept().items() if one.name not in now}
    found |= dict.fromkeys(figures, commit_and_date())
    rows = {one.name: [one.value, one.goal, one.more, found[one]] for one in found}
    lines = (f"{json.dumps(name)}: {json.dumps(rows[name])}" for name in sorted(rows))
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}{table(found)}\n{END}{rest.partition(END)[2]}")


def table(found: dict[Figure, str]) -> str:
    """The figures as rows of the page, those of one group as a range."""
    groups: dict[tuple[str, float], list[Figure]] = defaultdict(list)
    for one in found:
        groups[one.group, one.goal].append(one)
    lines = ["| figure | measured | goal | commit, date |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(groups[key], found) for key in sorted(groups))])


def _row(of: list[Figure], found: dict[Figure, str]) -> str:
    name = of[0].group if len(of) > 1 else of[0].name
    values = sorted({one.value for one in (min(of, key=_value), max(of, key=_value))})
    measured = " to ".join(f"{value:,.4g}" for value in values)
    sign, verdict = (
        "≥" if of[0].more else "≤",
        "" if all(one.reached for one in of) else " (missed)",
    )
    origins = "; ".join(sorted({found[one] for one in of}))
    return f"| {name} | {measured} | {sign} {of[0].goal:,g}{verdict} | {origins} |"


def _value(one: Figure) -> float:
    return one.value


def commit_and_date() -> str:
    """Where the figures of a run come from, as pages say it."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.check_output(asked, cwd=PAGE.parent, text=True).strip()
    return f"{commit}, {time.strftime('%Y-%m-%d')}"
