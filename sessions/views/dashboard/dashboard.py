"""The team's dashboard: figures of a range, with their basis."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions.access import allowed, team_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.policies.policies import active_version
from sessions.actions.reviews.agreement import Agreement, agreement_in
from sessions.figures import figure
from sessions.models import Team
from sessions.models.dashboard.dashboards import (
    Dashboard,
    Number,
    SessionSpan,
    dashboard,
    day_costs,
    extent,
)
from sessions.models.dashboard.day_totals import due_once, spans_of
from sessions.models.dashboard.matching import matching
from sessions.models.dashboard.savings import SimulatedSaving, simulated_saving
from sessions.models.dashboard.slices import Split
from sessions.models.dashboard.tiles import TILES
from sessions.models.dashboard.troubles import nearest_limit
from sessions.models.dashboard.waiting import assessing
from sessions.models.record.demo_data import counts
from sessions.models.tools.unused import unused_in
from sessions.models.web.periods import (
    DAY,
    HOUR,
    USUAL,
    Period,
    month_of,
)
from sessions.models.web.sums import Tile
from sessions.views.dashboard.changes import changed_figures
from sessions.views.dashboard.charts import charts
from sessions.views.dashboard.controls import SPLIT, begins, controls, query, shown_range, split_of
from sessions.views.dashboard.first_fix import first_line, weeks_in
from sessions.views.dashboard.fixes import FixPlaces, fixes
from sessions.views.dashboard.hero import avoidable, change, recall, spend, success
from sessions.views.dashboard.links import part_days, sessions_url
from sessions.views.dashboard.peak import cost_peak
from sessions.views.dashboard.ranking import MOST
from sessions.views.dashboard.since_visit import since_visit
from sessions.views.dashboard.waiting import waiting_rows
from sessions.views.web.dates import RANGE
from sessions.views.web.demo_notice import demo_notice
from sessions.views.web.filters import list_version
from sessions.views.web.pages import Link, Page
from sessions.views.web.sparklines import TREND

AT_MOST_EVERY = 2_000
"""Minimum milliseconds between two updates of an open page."""


COMPARED = {
    "today": "yesterday",
    "24h": "the 24 hours before",
    "7d": "the week before",
    "30d": "the 30 days before",
}
"""The period before, by range."""


@dataclass(frozen=True, slots=True)
class TileRow:
    """A figure as a row of the table: the headline first, then related numbers."""

    tile: Tile
    numbers: tuple[Number, ...]
    basis: str
    counted: int
    sessions: int
    missing: list[tuple[int, str]]
    url: str
    none: str
    note: str = ""

    @property
    def headline(self) -> Number:
        """The first number."""
        return self.numbers[0]

    @property
    def change(self) -> str:
        """The change of the headline since the period before; empty if unknown."""
        return change(self.headline.value, self.headline.before, self.headline.column.unit)


@require_GET
@due_once()
def page(request: HttpRequest) -> HttpResponse:
    """Show figures, charts and problems of the sessions in a range."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    month, left_days = month_of(now)
    keep_totals(team)
    version = list_version(request)  # before the rows: a change in between is announced again
    there = extent(team, month)
    if not there.sessions:
        return redirect("start")
    shown = shown_range(request, there, now)
    period, wrong = shown.period, shown.wrong
    split = split_of(request)
    made = dashboard(team, period, split)
    context = {
        "section": "dashboard",
        "version": version,
        "at_most_every": AT_MOST_EVERY,
        "period": period,
        "begins": begins(period, there),
        "wrong": wrong,
        "widened": shown.widened,
        **controls(request, team, period, split, wrong=wrong),
        "split": split,
        "unsplit": made.whole.of["unsplit"],
        "sessions": made.whole.of["sessions"],
        "compared": bool(made.before and made.before.of["sessions"]),
        "sub_agents": made.whole.of["sub_agents"],
        "list_url": sessions_url(period, split),
        "outside": 0 if split else there.sessions - made.whole.of["sessions"],
        "hourly": period.size == HOUR,
        "waiting": waiting_rows(request, team),
        "assessing": assessing(team) and made.whole.of["not_assessed"],
        "not_assessed": made.whole.of["not_assessed"],
        **demo_notice(request, team),
        "since_visit": since_visit(request, team),
    }
    if made.whole.of["sessions"]:
        context |= _filled(request, team, made, split, shown.asked or {"range": USUAL}, there)
        context |= _figures(
            team, made, split, _forecast(made.forecast(there.spent, now, left_days))
        )
    else:
        context |= {"offer": _offer(there)}
    return render(request, "dashboard/dashboard.html", context, status=400 if wrong else 200)


def _filled(
    request: HttpRequest,
    team: Team,
    made: Dashboard,
    split: Split,
    asked: dict[str, str],
    there: SessionSpan,
) -> dict[str, Any]:
    """What to do, the most expensive day, what changed, and the tables behind them."""
    period = made.period
    unused, *unused_before = unused_in(team, list(reversed(spans_of(period))), split)
    places = FixPlaces(
        reverse("cache") + query(split, **asked),
        sessions_url(period, split, counted="lost"),
        _unused_url(period),
        active_version(team),
        allowed(request, team, "write"),
        made.whole.of["hour_saved"] > 0 and _hour_saves_managed(team, period, split),
    )
    broken = sessions_url(period, split, flags=("breaks",))
    return {
        "avoidable": avoidable(made, unused, unused_before[0] if unused_before else None, broken),
        "most_fixes": MOST,
        "fixes": (found := fixes(made, unused, places, _saving(team, period, split))),
        "first_fix": first_line(found, made.whole, weeks_in(_busy(team, made, split))),
        "peak": cost_peak(team, made, split),
        "changes": changed_figures(team, made, split),
        "compared_with": COMPARED.get(period.name, "the period before") if period.before else "",
        **_halves(there),
        "trend_height": TREND,
        "nearest": [] if split else nearest_limit(team, period),
        "near_url": sessions_url(period, split, flags=("near-limit",), sort="peak"),
    }


def _busy(team: Team, made: Dashboard, split: Split) -> set[int]:
    """Days of a range with a cost; none if they are not known, as in a split drawn in weeks."""
    period = made.period
    if period.size > DAY:
        return set() if split else set(day_costs(team, period))
    parts = zip(period.parts, made.parts, strict=True)
    return {at // DAY for at, part in parts if part.of["cost"]}


def _figures(team: Team, made: Dashboard, split: Split, forecast: str) -> dict[str, Any]:
    period = made.period
    notes = {
        "spend": forecast,
        "ledger": _ledgers(made),
        "reviews": _agreement(agreement_in(team, period.since, period.until)),
    }
    main, more = charts(made)
    return {
        "heroes": [
            spend(made, sessions_url(period, split, counted="spend"), forecast),
            recall(made, sessions_url(period, split, counted="recall")),
            success(made, sessions_url(period, split, counted="outcomes")),
        ],
        "rows": [row_of(made, tile, split, notes.get(tile.name, "")) for tile in TILES],
        "charts": main,
        "more_charts": more,
    }


def _hour_saves_managed(team: Team, period: Period, split: Split) -> bool:
    """Whether a policy managed any of the sessions in which a one-hour TTL saves."""
    saves = Q(assessment__hour_saved_microusd__gt=0, policy_version__isnull=False)
    given = {name: value for name, value in asdict(split).items() if value}
    rows = matching(team, facets=given, within=(period.since, period.until), counted=saves)
    return rows.filter(counts(team.pk)).exists()


def _saving(team: Team, period: Period, split: Split) -> SimulatedSaving | None:
    """What a policy would have saved for the sessions without one, if it was simulated."""
    given = {name: value for name, value in asdict(split).items() if value and name != "policy"}
    rows = matching(
        team, facets=given, within=(period.since, period.until), counted=Q(policy_version=None)
    )
    return None if split.policy else simulated_saving(team, rows.filter(counts(team.pk)))


def _unused_url(period: Period) -> str:
    """The URL of the tools that no session of a period used."""
    asked = {"range": period.name} if period.name else part_days(period.since, period.until)
    return f"{reverse('team_tools')}?{urlencode(asked)}#unused"


def _forecast(cost: int | None) -> str:
    return f", ≈{figure(cost, 'microusd')} this month at this pace" if cost is not None else ""


def _ledgers(made: Dashboard) -> str:
    """The number of compactions without a score, and why."""
    of = made.whole.of
    unscored, without = of["ledgers_made"] - of["ledgers"], of["compactions"] - of["ledgers_made"]
    phrase = f"{of['ledgers_made']:,} of {of['compactions']:,} compactions have a fact ledger"
    if unscored:
        phrase += (
            f", {unscored:,} of them without a score (the log lacks the replaced messages, "
            "or they held no fact)"
        )
    if without > 0:
        phrase += f"; the other {without:,} left no readable summary or are not assessed yet"
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


def row_of(made: Dashboard, tile: Tile, split: Split, note: str = "") -> TileRow:
    """A figure with its numbers, and the URL of the sessions it counts."""
    sums = made.whole.of
    return TileRow(
        tile=tile,
        numbers=made.numbers(tile),
        basis=made.basis(tile),
        counted=sums[tile.counted],
        sessions=sums["sessions"],
        missing=made.missing(tile),
        url=sessions_url(made.period, split, counted=tile.name),
        none=made.none(tile),
        note=note,
    )


def _halves(there: SessionSpan) -> dict[str, Any]:
    """The time of the first session, and the URL of the later half of all, which the earlier half
    can be compared with; empty if it is a day or less."""
    assert there.first is not None and there.last is not None
    half = (there.last + 1 - there.first) // 2
    days = part_days(there.last + 1 - half, there.last + 1)
    return {"first": there.first, "halves_url": "?" + urlencode(days) if half >= DAY else ""}


def _offer(there: SessionSpan) -> dict[str, Any]:
    """The time of the last session, and the URL of the seven days up to it."""
    assert there.last is not None
    days = part_days(there.last - 6 * DAY, there.last + 1)
    return {"last": there.last, "url": "?" + urlencode(days)}


PAGES = (
    Page(
        route="dashboard/",
        query=(*RANGE, *SPLIT),
        view=page,
        name="dashboard",
        link=Link(10, "Dashboard", "dashboard", "g d", "dashboard"),
        about="overview, what to do, what changed, cost, nearest their limit",
    ),
)
