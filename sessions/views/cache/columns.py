"""What cache breaks cost over time, as stacked columns: a part of one leads to its breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sessions.figures import day, money
from sessions.models.cache.causes import CauseSums, causes_in
from sessions.models.dashboard.dashboards import Dashboard
from sessions.models.dashboard.slices import Split
from sessions.models.web.periods import HOUR, Period
from sessions.views.dashboard.controls import query
from sessions.views.dashboard.links import part_days

HEIGHT = 1000
WIDTH = 100
"""Units of the plot, and of a column with its gap."""

LABELS = 4
"""Most labels below the columns."""

REST = "rest"
"""The color of causes that cannot be avoided."""


@dataclass(frozen=True, slots=True)
class StackPart:
    """A cause's part of a column, in units of the plot, and where it leads."""

    kind: str
    y: int
    height: int
    says: str
    url: str


@dataclass(frozen=True, slots=True)
class StackColumn:
    """The causes of a part of the range, the avoidable ones at the bottom; `label` is empty below
    most columns if there are many."""

    x: int
    at: int
    label: str
    total: int
    parts: tuple[StackPart, ...]
    url: str


class LegendEntry(NamedTuple):
    """A color with its cost in micro-dollars; `causes` if it has several."""

    kind: str
    name: str
    cost: int
    causes: str = ""


@dataclass(frozen=True, slots=True)
class CauseColumns:
    """The columns of a range, `top` micro-dollars high, and the causes in them."""

    width: int
    top: int
    columns: tuple[StackColumn, ...]
    legend: tuple[LegendEntry, ...]


def columns(made: Dashboard, period: Period, split: Split) -> CauseColumns | None:
    """What breaks cost in each part of a range; None if nothing is known to have cost anything."""
    found = [causes_in(part) for part in made.parts]
    totals = [sum(one.microusd or 0 for one in causes) for causes in found]
    top = max(totals, default=0)
    if not top:
        return None
    order = _ordered(causes_in(made.whole))
    every = -(-len(found) // LABELS)
    drawn = []
    for index, (at, causes) in enumerate(zip(period.parts, found, strict=True)):
        urls = part_days(at, at + period.size)
        parts, y = [], HEIGHT
        by_key = {one.key: one for one in causes}
        for one in order:
            cost = (by_key[one.key].microusd or 0) if one.key in by_key else 0
            height = round(HEIGHT * cost / top)
            if not height:
                continue
            y -= height
            says = f"{_when(at, period)}: {one.name}, {money(cost)}"
            url = query(split, **one.asked, **urls) + "#worst"
            parts.append(StackPart(_color(one), y, height, says, url))
        label = _when(at, period) if index % every == 0 else ""
        drawn.append(
            StackColumn(
                WIDTH * index + 12,
                at,
                label,
                totals[index],
                tuple(parts),
                query(split, **urls) + "#worst",
            )  # fmt: skip
        )
    return CauseColumns(WIDTH * len(drawn), top, tuple(drawn), tuple(_legend(order)))


def _ordered(causes: list[CauseSums]) -> list[CauseSums]:
    """Avoidable causes first, then what no log explains, each by cost."""
    return sorted(
        (one for one in causes if one.microusd), key=lambda one: (not one.avoidable, one.known)
    )


def _legend(order: list[CauseSums]) -> Iterator[LegendEntry]:
    """An entry for each color: all that could not be avoided has one, with its causes beside it."""
    rest = [one for one in order if _color(one) == REST]
    for one in order:
        if one not in rest:
            yield LegendEntry(_color(one), one.name, one.microusd or 0)
    if rest:
        causes = ", ".join(one.name.removesuffix(", not avoidable") for one in rest)
        yield LegendEntry(REST, "not avoidable", sum(one.microusd or 0 for one in rest), causes)


def _color(one: CauseSums) -> str:
    return one.kind if one.avoidable or not one.known else REST


def _when(at: int, period: Period) -> str:
    time = datetime.fromtimestamp(at / 1000, UTC)
    return f"{time:%H:%M}" if period.size == HOUR else day(time)
