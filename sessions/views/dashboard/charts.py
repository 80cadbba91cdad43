"""The dashboard's charts, with the same numbers as its tiles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from sessions.figures import moment, percent
from sessions.models.dashboard import tiles
from sessions.models.dashboard.dashboards import Dashboard, Mark
from sessions.models.web.periods import DAY, HOUR
from sessions.models.web.sums import Sums, Tile, Value, total

BINS = 10
"""Bins of the peak distribution, each a tenth of the window; the last includes everything above."""


SEEN = 0.005
"""Share of the spend from which what is not split yet has a bar (ours)."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: props of the chart component, and rows of its table."""

    name: str
    props: dict[str, Any]
    heads: tuple[str, ...]
    rows: list[tuple[Any, list[tuple[Value, str]]]]

    @property
    def props_id(self) -> str:
        """The id of the element that holds the props."""
        return f"chart-{self.name}-props"


def charts(made: Dashboard) -> tuple[list[Chart], list[Chart]]:
    """The charts of a dashboard, and those among its further figures."""
    paid = "Spend (at least) by cause" if made.whole.of["short"] else "Spend by cause"
    main = [
        _over_time(made, "spend", paid, tiles.AVOIDABLE, _spend(made), bars=True),
        _over_time(made, "cache", "Cache read share", tiles.CACHE, _first(tiles.CACHE)),
    ]
    return main, [
        _peaks(made),
        _over_time(made, "compactions", "Compactions", tiles.COMPACTIONS, _COMPACTIONS, bars=True),
        _over_time(made, "kept", "Needed-later recall and facts kept", tiles.RECALL, _KEPT),
    ]


Lines = tuple[tuple[str, str, Any], ...]
"""Label, unit, and function of the sums."""


def _needed(sums: Sums) -> Value:
    """Cost of written and uncached tokens, minus avoidable and unexplained rewrites."""
    of = sums.of
    again = of["avoidable"] + of["unexplained"]
    return of["write_cost"] + of["uncached_cost"] - again if of["split"] else None


def _unsplit(sums: Sums) -> Value:
    """Cost of steps that no assessment has split yet, as of a session that still runs."""
    of = sums.of
    split = of["uncached_cost"] + of["write_cost"] + of["read_cost"] + of["output_cost"]
    return max(of["cost"] - split, 0) if of["priced"] else None


def _spend(made: Dashboard) -> Lines:
    """The parts of the spend, which add up to it; what is not split yet if it can be seen."""
    left = _unsplit(made.whole) or 0
    seen = left >= made.whole.of["cost"] * SEEN
    return (*_SPLIT, ("Not split yet", "microusd", _unsplit)) if seen and left else _SPLIT


def _first(tile: Tile) -> Lines:
    column = tile.columns[0]
    return ((column.label, column.unit, column.of),)


_SPLIT: Lines = (
    ("Output", "microusd", total("output_cost", "split")),
    ("Cache read", "microusd", total("read_cost", "split")),
    ("Cache write and uncached", "microusd", _needed),
    ("Unexplained rewrites", "microusd", total("unexplained", "split")),
    ("Avoidable rewrites", "microusd", total("avoidable", "split")),
)
_COMPACTIONS: Lines = (
    ("Recorded in logs", "count", total("recorded")),
    ("Managed contexts", "count", total("managed")),
)
_KEPT: Lines = (
    ("Recall: in context", "share", tiles.RECALL.columns[0].of),
    ("Facts kept: score", "share", tiles.LEDGER.columns[0].of),
)


def _over_time(
    made: Dashboard, name: str, title: str, tile: Tile, lines: Lines, *, bars: bool = False
) -> Chart:
    parts = made.period.parts
    per = {HOUR: "hour", DAY: "day"}.get(made.period.size, f"{made.period.size // DAY} days")
    values = [[of(part) for part in made.parts] for _, _, of in lines]
    series = [
        {"label": label, "values": column, "kind": "bar" if bars else "line", "unit": unit}
        for (label, unit, _), column in zip(lines, values, strict=True)
    ]
    props = {
        "title": f"{title} per {per}",
        "x": {"label": per.capitalize(), "values": list(parts), "kind": "time"},
        "series": series,
        "marks": [
            {"x": mark.at, "label": describe_mark(mark), "url": url_of(mark)} for mark in made.marks
        ],
        "basis": tile.basis or "measured",
        "stack": bars,
    }
    rows = [
        (
            days_of(at, made.period.size),
            [(column[i], unit) for (_, unit, _), column in zip(lines, values, strict=True)],
        )
        for i, at in enumerate(parts)
    ]
    return Chart(name, props, tuple(label for label, _, _ in lines), rows)


def days_of(at: int, size: int) -> int | str:
    """A part of a period as its table names it: a moment, or the first and last of several days."""
    first, last = moment(at), moment(at + size - DAY)
    if size <= DAY or first is None or last is None:
        return at
    year = f", {first.year}" if first.year != last.year else ""
    return f"{first:%b} {first.day}{year} – {last:%b} {last.day}, {last.year}"


def _peaks(made: Dashboard) -> Chart:
    """Number of sessions by peak, per tenth of the window."""
    counts: Counter[int] = Counter()
    for peak, many in made.whole.peaks.items():
        counts[min(peak * BINS // 1000, BINS - 1)] += many
    values = [counts[i] for i in range(BINS)] if counts else []
    lows = [i * 100 // BINS for i in range(BINS)] if counts else []
    props = {
        "title": "Sessions by peak fill of the window",
        "x": {"label": "Peak, % of the window, from", "values": lows, "kind": "percent"},
        "series": [{"label": "Sessions", "values": values, "kind": "bar", "unit": "count"}],
        "basis": made.basis(tiles.WINDOW),
    }
    if counts:
        props["summary"] = _summary(made)
    rows: list[tuple[Any, list[tuple[Value, str]]]] = [
        (f"{low} to {low + 100 // BINS} %", [(count, "count")])
        for low, count in zip(lows, values, strict=True)
    ]
    if rows:
        rows[-1] = (f"{lows[-1]} % and more", rows[-1][1])
    return Chart("peaks", props, ("Sessions",), rows)


def _summary(made: Dashboard) -> str:
    median, _, near = (column.of(made.whole) for column in tiles.WINDOW.columns)
    few = made.whole.peaks.total()
    return (
        f"Half of {few:,} sessions stay at or below {percent(median)}; "
        f"{near:,} used 80 % or more of their window."
    )


def describe_mark(mark: Mark) -> str:
    """A policy change in words."""
    share = mark.detail.get("share")
    return {
        "rollout.accepted": f"{mark.named} rolled out to {share} %",
        "rollout.widened": f"{mark.named} widened to {share} %",
        "rollout.completed": f"{mark.named} rolled out to all",
        "rollout.rolled_back": f"{mark.named} rolled back",
    }[mark.action]


def url_of(mark: Mark) -> str:
    """The URL of the rollout's page."""
    return reverse("rollout", args=[mark.detail["rollout"]])
