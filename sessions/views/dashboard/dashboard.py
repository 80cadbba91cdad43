"""The team's dashboard: figures of a range, with their basis."""

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

from sessions.access import team_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.reviews.agreement import Agreement, agreement_in
from sessions.figures import figure
from sessions.models import Team
from sessions.models.dashboard.dashboards import Dashboard, Number, SessionSpan, dashboard, extent
from sessions.models.dashboard.tiles import TILES
from sessions.models.dashboard.troubles import breaks, nearest_limit
from sessions.models.tools.unused import unused_tools
from sessions.models.web.periods import (
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
from sessions.models.web.sums import Tile
from sessions.views.dashboard.charts import charts
from sessions.views.web.filters import SessionFilters, list_version
from sessions.views.web.pages import Link, Page
from sessions.views.web.places import step_url
from sessions.views.web.sparklines import TREND, Trend, trend

MANY_TIMES = 10
"""Factor from which growth is shown as a multiple rather than in percent."""

AT_MOST_EVERY = 2_000
"""Minimum milliseconds between two updates of an open page."""


@dataclass(frozen=True, slots=True)
class ShownTile:
    """A tile as the page shows it: the headline first, then related numbers."""

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
        """The first number."""
        return self.numbers[0]

    @property
    def change(self) -> str:
        """The change of the headline since the period before; empty if unknown."""
        return change(self.headline)


def change(number: Number) -> str:
    """A change in words, such as +12 %, −3 points or ×20; empty without comparison."""
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
    """Show figures, charts and problems of the sessions in a range."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    month, left_days = month_of(now)
    keep_totals(team)
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
    team: Team, made: Dashboard, there: SessionSpan, now: int, left_days: float
) -> dict[str, Any]:
    period = made.period
    notes = {
        "spend": _forecast(made.forecast(there.spent, now, left_days)),
        "ledger": _ledgers(made),
        "reviews": _agreement(agreement_in(team, period.since, period.until)),
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
            (cause, step_url(*cause.costliest) if cause.costliest else "") for cause in found.causes
        ],
        "by_format": len({name for cause in found.causes for name in cause.formats}) > 1,
        "nearest": nearest_limit(team, period),
        "near_url": sessions_url(period, flags=("near-limit",), sort="peak"),
        "unused": unused_tools(team, period),
        "unused_url": _unused_url(period),
    }


def _unused_url(period: Period) -> str:
    """The URL of the tools that no session of a period used."""
    asked = {"range": period.name}
    if not period.name:
        since, last = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (period.since, period.last))
        asked = {"from": f"{since:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
    return f"{reverse('team_tools')}?{urlencode(asked)}#unused"


def _forecast(cost: int | None) -> str:
    return f"≈{figure(cost, 'microusd')} this month at this pace" if cost is not None else ""


def _ledgers(made: Dashboard) -> str:
    """The number of compactions without a score, and why."""
    of = made.whole.of
    unscored, without = of["ledgers_made"] - of["ledgers"], of["compactions"] - of["ledgers_made"]
    phrase = f"{of['ledgers_made']:,} of {of['compactions']:,} compactions have a ledger"
    if unscored:
        phrase += (
            f", {unscored:,} of them without a score (the log lacks the replaced messages, "
            "or they held no fact)"
        )
    if without > 0:
        phrase += f"; {without:,} left no readable summary or are not assessed yet"
    return phrase


def _agreement(found: Agreement) -> str:
    """The agreement between two reviewers of the same compaction, in words."""
    if not found.doubles:
        return "no double reviews"
    if not found.known:
        return f"agreement unknown: {found.doubles} double reviews, 5 needed"
    alpha = found.alphas["verdict"]
    phrase = "complete" if alpha is None else f"{alpha:.2f}"
    return f"agreement on verdicts (α) {phrase}, from {found.doubles} double reviews"


def shown(made: Dashboard, tile: Tile, note: str = "") -> ShownTile:
    """A tile with its numbers, its table by part, and the URL of the sessions it counts."""
    numbers = made.numbers(tile)
    sums = made.whole.of
    return ShownTile(
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
    """The URL of the session list for a period, with further filters."""
    return (
        reverse("sessions")
        + SessionFilters(since=period.since, until=period.until, **narrowed).address()
    )


def _ranges(period: Period) -> list[tuple[str, str, bool]]:
    named = [(name, label) for name, (label, _, _) in RANGES.items()]
    return [
        (label, f"?range={name}", period.name == name) for name, label in (*named, (ALL, "All"))
    ]


def _offer(there: SessionSpan) -> dict[str, Any]:
    """The time of the last session, and the URL of the seven days up to it."""
    assert there.last is not None
    days = [f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}" for ms in
            (there.last - 6 * DAY, there.last)]  # fmt: skip
    return {"last": there.last, "url": "?" + urlencode({"from": days[0], "to": days[1]})}


PAGES = (
    Page(
        route="dashboard/",
        query=("range", "from", "to"),
        view=page,
        name="dashboard",
        link=Link(10, "Dashboard", "dashboard", "g d", "dashboard"),
    ),
)
