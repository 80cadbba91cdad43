"""The team's dashboard: what its sessions of a range come to, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions.actions.agreement import Agreement, reviewed
from sessions.api.access import team_of
from sessions.models import Team
from sessions.models.dashboards import Dashboard, Extent, Number, dashboard, extent
from sessions.models.periods import (
    ALL,
    DAY,
    HOUR,
    RANGES,
    USUAL,
    BadPeriod,
    Period,
    asked_for,
    ending_now,
    month_of,
)
from sessions.models.sums import Tile
from sessions.models.tiles import TILES
from sessions.models.troubles import breaks, nearest_limit, review_items
from sessions.templatetags.figures import figure
from sessions.views.charts import charts
from sessions.views.filters import Filters, list_version
from sessions.views.places import step_url
from sessions.views.sparklines import TREND, Trend, trend

MANY_TIMES = 10
"""From so much on, a growth in percent says nobody anything."""

AT_MOST_EVERY = 2_000
"""Milliseconds between two looks of an open page at what changed."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A tile as the page shows it: its headline first, then the numbers beside it."""

    tile: Tile
    numbers: tuple[Number, ...]
    basis: str
    counted: int
    sessions: int
    missing: list[tuple[int, str]]
    url: str
    trend: Trend | None
    rows: list[tuple[int, list[tuple[Any, str]]]]
    none: str
    note: str = ""

    @property
    def headline(self) -> Number:
        """What it is about."""
        return self.numbers[0]

    @property
    def change(self) -> str:
        """How the headline moved since the period before; empty where that is not known."""
        return change(self.headline)


def change(number: Number) -> str:
    """A change in words, such as +12 %, −3 points or ×20; empty where nothing can be compared."""
    now, before, unit = number.value, number.before, number.column.unit
    if now is None or before is None:
        return ""
    if unit == "share":
        return _signed(round(100 * (now - before)), "point", plural=True)
    if not before:
        return "more than none" if now else "as before"
    if now >= MANY_TIMES * before:
        return f"×{now / before:,.0f}"
    return _signed(round(100 * (now - before) / before), "%")


def _signed(amount: int, unit: str, *, plural: bool = False) -> str:
    if not amount:
        return "as before"
    ending = "s" if plural and abs(amount) != 1 else ""
    return f"{'+' if amount > 0 else '−'}{abs(amount):,} {unit}{ending}"


@require_GET
def page(request: HttpRequest) -> HttpResponse:
    """Figures, charts and troubles of the sessions of a range."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    month, left_days = month_of(now)
    there = extent(team, month)
    if not there.sessions:
        return redirect("start")
    wrong = None
    try:
        period = asked_for(request.GET.dict(), now, there.first, there.last)
    except BadPeriod as error:
        wrong, period = error, ending_now(USUAL, now)
    made = dashboard(team, period)
    context = {
        "section": "dashboard",
        "team": team,
        "version": list_version(request),
        "at_most_every": AT_MOST_EVERY,
        "period": period,
        "wrong": wrong,
        "asked": request.GET,
        "ranges": _ranges(period),
        "sessions": made.whole.of["sessions"],
        "compared": bool(made.before and made.before.of["sessions"]),
        "sub_agents": made.whole.of["sub_agents"],
        "list_url": sessions_url(period),
        "outside": there.sessions - made.whole.of["sessions"],
        "hourly": period.size == HOUR,
    }
    if made.whole.of["sessions"]:
        context |= _filled(team, made, there, now, left_days)
    else:
        context["offer"] = _offer(there)
    return render(request, "dashboard/dashboard.html", context, status=400 if wrong else 200)


def _filled(
    team: Team, made: Dashboard, there: Extent, now: int, left_days: float
) -> dict[str, Any]:
    period = made.period
    notes = {
        "spend": _forecast(made.forecast(there.spent, now, left_days)),
        "ledger": _ledgers(made),
        "reviews": _agreement(reviewed(review_items(team, period)).agreement),
    }
    found = breaks(team, period)
    return {
        "tiles": [shown(made, tile, notes.get(tile.name, "")) for tile in TILES],
        "trend_height": TREND,
        "charts": charts(made),
        "breaks": found,
        "broken": made.whole.of["broken"],
        "breaks_url": sessions_url(period, flags=("breaks",)),
        "causes": [
            (cause, step_url(*cause.dearest) if cause.dearest else "") for cause in found.causes
        ],
        "nearest": nearest_limit(team, period),
        "near_url": sessions_url(period, flags=("near-limit",), sort="peak"),
    }


def _forecast(cost: int | None) -> str:
    return f"≈{figure(cost, 'microusd')} this month at this pace" if cost is not None else ""


def _ledgers(made: Dashboard) -> str:
    """Which of the compactions have no score, and why."""
    of = made.whole.of
    unscored, without = of["ledgers_made"] - of["ledgers"], of["compactions"] - of["ledgers_made"]
    told = f"Of {of['compactions']:,} compactions {of['ledgers_made']:,} have a ledger"
    if unscored:
        told += f", {unscored:,} of them no score (the log lacks what went, or that held no fact)"
    if without > 0:
        told += f"; {without:,} left no summary to read, or are not looked at yet"
    return told


def _agreement(found: Agreement) -> str:
    """What two people who judged the same say alike."""
    if not found.doubles:
        return "nothing was reviewed by two"
    if not found.known:
        return f"agreement unknown: {found.doubles} reviewed by two, 5 are needed"
    alpha = found.alphas["verdict"]
    told = "always the same" if alpha is None else f"{alpha:.2f}"
    return f"agreement on verdicts (α) {told}, of {found.doubles} reviewed by two"


def shown(made: Dashboard, tile: Tile, note: str = "") -> Shown:
    """A tile with its numbers, its table part by part, and the list of what it counts."""
    numbers = made.numbers(tile)
    sums = made.whole.of
    return Shown(
        tile=tile,
        numbers=numbers,
        basis=made.basis(tile),
        counted=sums[tile.counted],
        sessions=sums["sessions"],
        missing=made.missing(tile),
        url=sessions_url(made.period, counted=tile.name),
        trend=trend(numbers[0].values),
        rows=[
            (at, [(number.values[i], number.column.unit) for number in numbers])
            for i, at in enumerate(made.period.parts)
        ],
        none=made.none(tile),
        note=note,
    )


def sessions_url(period: Period, **narrowed: Any) -> str:
    """The list of exactly the sessions of a period, or of some of them."""
    return (
        reverse("sessions") + Filters(since=period.since, until=period.until, **narrowed).address()
    )


def _ranges(period: Period) -> list[tuple[str, str, bool]]:
    named = [(name, label) for name, (label, _, _) in RANGES.items()]
    return [
        (label, f"?range={name}", period.name == name) for name, label in (*named, (ALL, "All"))
    ]


def _offer(there: Extent) -> dict[str, Any]:
    """When the last session was, and the address of the seven days that end with it."""
    assert there.last is not None
    days = [f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}" for ms in
            (there.last - 6 * DAY, there.last)]  # fmt: skip
    return {"last": there.last, "url": "?" + urlencode({"from": days[0], "to": days[1]})}
