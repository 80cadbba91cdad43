"""Figures that docs/speed.md states: its table is written by benchmarks and checked by them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import say

PAGE = Path(__file__).resolve().parent.parent / "docs" / "speed.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"
TOLERANCE = 1.3
"""How much worse a figure may be than the page says before it fails: machines differ from hour to
hour."""

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

    def row(self, origin: str) -> str:
        """The row of the table; `origin` is commit and date."""
        sign, verdict = "≥" if self.more else "≤", "" if self.reached else " (missed)"
        return f"| {self.name} | {self.value:,.4g} | {sign} {self.goal:,g}{verdict} | {origin} |"


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


def check(figures: list[Figure]) -> list[str]:
    """Say each figure that is worse than the page states; return their names."""
    stated = {name: float(cell.replace(",", "")) for name, cell in _cells(PAGE.read_text())}
    worse = [one for one in figures if one.name in stated and one.worse_than(stated[one.name])]
    for one in worse:
        say(f"worse than docs/speed.md: {one.name}: {one.value:,.4g}, was {stated[one.name]:,g}")
    return [one.name for one in worse]


def write(figures: list[Figure]) -> None:
    """Put the figures of this run into the page, with commit and date; keep the others."""
    origin = commit_and_date()
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    rows = {line.split(" | ")[0][2:]: line for line in table.splitlines() if line.startswith("| ")}
    rows.pop("figure", None)
    rows.pop("---", None)
    rows |= {one.name: one.row(origin) for one in figures}
    lines = ["| figure | measured | goal | commit, date |", "| --- | --- | --- | --- |"]
    made = "\n".join([*lines, *(rows[name] for name in sorted(rows))])
    PAGE.write_text(f"{head}{BEGIN}{made}\n{END}{tail}")


def commit_and_date() -> str:
    """Where the figures of a run come from, as pages say it."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.check_output(asked, cwd=PAGE.parent, text=True).strip()
    return f"{commit}, {time.strftime('%Y-%m-%d')}"


def _cells(text: str) -> list[tuple[str, str]]:
    table = text.partition(BEGIN)[2].partition(END)[0]
    return re.findall(r"^\| ([^|]+) \| (-?\d[\d.,e+-]*) \|", table, re.MULTILINE)
