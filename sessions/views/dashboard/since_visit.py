"""What arrived since a person's previous visit, on the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, Max, Min, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from sessions.access import allowed, team_of
from sessions.actions.accounts.visits import mark_seen, visit_before
from sessions.actions.demo.demo_tuning import NOTE
from sessions.actions.reviews.reservations import open_to
from sessions.figures import at_least, moment
from sessions.models import Job, ModelCall, Session, Simulation, Team
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import COST_IS_BOUND, SOURCE_LIVE
from sessions.models.web.statements import Statement, given_int, given_time, given_uuid
from sessions.views.dashboard.controls import SPLIT, query, range_of, split_of
from sessions.views.web.dates import RANGE
from sessions.views.web.filters import SessionFilters
from sessions.views.web.pages import Page

FIRST_VISIT = timedelta(days=1)
"""At a first visit, what arrived in this time is listed (our choice)."""


class NewThings(NamedTuple):
    """A number of things in words, the page that lists them (empty for none), and more about
    them."""

    text: str
    url: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class SinceVisit:
    """When the previous visit ended, and what arrived since then; at a `first` visit, a day ago.
    `seen_url` counts it as seen."""

    at: datetime
    news: list[NewThings]
    first: bool
    seen_url: str

    @property
    def label(self) -> str:
        """The day, or the time of today."""
        at = timezone.localtime(self.at)
        return f"{at:%H:%M}" if at.date() == timezone.localdate() else _day(at.date())


def since_visit(request: HttpRequest, team: Team) -> SinceVisit | None:
    """What is new for a person; None for keys."""
    user = request.user
    if not isinstance(user, User):
        return None
    before = visit_before(user, team)
    at = before or (timezone.now() - FIRST_VISIT).replace(microsecond=0)
    reviews = allowed(request, team, "review")
    news = list(_news(team, at, user if reviews else None))
    return SinceVisit(at, news, before is None, reverse("dashboard_seen") + _asked(request, team))


def _news(team: Team, at: datetime, reviewer: User | None) -> Iterator[NewThings]:
    filters = SessionFilters(arrived=int(at.timestamp()) * 1000)
    sums = _ARRIVED.first(team=team.pk, since=at) or (0,) * len(_SUMS)
    found = dict(zip(_SUMS, sums, strict=True))
    sessions = reverse("sessions")
    if found["many"]:
        text = _many(found["many"], "session")
        yield NewThings(text, sessions + filters.address(), _imported(found))
        if found["cost"] is not None:
            costliest = sessions + filters.address(sort="cost")
            spent = at_least(found["cost"], bound=bool(found["bound"]))
            yield NewThings(f"{spent} spent", costliest)
    if found["compactions"]:
        url = sessions + filters.address(flags=("compacted",))
        yield NewThings(_many(found["compactions"], "compaction"), url)
    if found["lost"]:
        url = sessions + filters.address(flags=("lost",))
        yield NewThings(_many(found["lost"], "lost fact") + " needed again", url)
    if reviewer is not None and found["many"]:
        # An item comes after its session: the first condition has an index.
        arrived = open_to(team, reviewer).filter(
            created__gte=at, revision__run__session__created__gte=at
        )
        waiting = arrived.order_by().count()
        if waiting:
            text = f"{waiting:,} of their compactions to review"
            yield NewThings(text, reverse("reviews") + "#waiting-title")
    if found["breaks"]:
        url = sessions + filters.address(flags=("breaks",))
        yield NewThings(_many(found["breaks"], "cache break"), url)
    yield from _simulated(team, at)
    yield from _spent_live(team, at)


_IMPORTED = ~Q(source=SOURCE_LIVE)
_SUMS = {
    "many": Count("pk"),
    "imported": Count("pk", filter=_IMPORTED),
    "began": Min("ended_at", filter=_IMPORTED),
    "ended": Max("ended_at", filter=_IMPORTED),
    "cost": Sum("cost_microusd"),
    "breaks": Sum("break_count"),
    "compactions": Sum("compaction_count"),
    "lost": Sum("assessment__lost_facts"),
    "bound": Count("pk", filter=Q(cost_microusd=None) | COST_IS_BOUND),
}
"""What is added up of the sessions that arrived."""

_ARRIVED = Statement(
    lambda: (
        Session.objects.filter(counts(given_uuid("team")), team_id=given_uuid("team"))
        .filter(created__gte=given_time("since"))
        .order_by()
        .values("team")
        .annotate(**_SUMS)
        .values_list(*_SUMS)
    )
)


def _simulated(team: Team, at: datetime) -> Iterator[NewThings]:
    """The simulations that ended, those of the demo aside."""
    ended = _ENDED.column(team=team.pk, since=at)
    if ended:
        url = reverse("simulation", args=ended) if len(ended) == 1 else reverse("lab")
        yield NewThings(_many(len(ended), "finished simulation"), url)


_ENDED = Statement(
    lambda: (
        Simulation.objects.filter(team_id=given_uuid("team"))
        .filter(job__state=Job.State.DONE, job__finished__gte=given_time("since"))
        .exclude(note=NOTE)
        .values_list("pk")
    )
)


def _spent_live(team: Team, at: datetime) -> Iterator[NewThings]:
    """What agents that report here spent on calls, also in sessions that began before."""
    ms = int(at.timestamp() * 1000)
    cost, unknown = _SPENT.first(team=team.pk, since=at, ms=ms) or (None, 0)
    if cost:
        paid = at_least(cost, bound=bool(unknown))
        yield NewThings(f"{paid} spent by live agents", reverse("live"))


_SPENT = Statement(
    lambda: (
        ModelCall.objects.filter(counts(given_uuid("team"), "session__"))
        .filter(session__team_id=given_uuid("team"), session__source=SOURCE_LIVE)
        .filter(session__changed__gte=given_time("since"), at__gte=given_int("ms"))
        .order_by()
        .values("session__team")
        .annotate(cost=Sum("cost_microusd"), unknown=Count("pk", filter=Q(cost_microusd=None)))
        .values_list("cost", "unknown")
    )
)


def _imported(found: dict[str, Any]) -> str:
    """How many of the sessions were imported, and when these ran; empty for none."""
    if not found["imported"]:
        return ""
    alone = found["imported"] == found["many"]
    many = "imported" if alone else f"{found['imported']:,} imported"
    if found["began"] is None:
        return f"{many}, their logs have no times"
    began, ended = (timezone.localtime(moment(found[one])).date() for one in ("began", "ended"))
    ran = f"on {_day(began)}" if began == ended else f"from {_day(began)} to {_day(ended)}"
    return f"{many}, ran {ran}"


def _day(day: date) -> str:
    year = "" if day.year == timezone.localdate().year else f", {day.year}"
    return f"{day:%b} {day.day}{year}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@require_POST
def seen(request: HttpRequest) -> HttpResponse:
    """Count what arrived so far as seen, and show the dashboard as it was."""
    team = team_of(request)
    if isinstance(request.user, User):
        mark_seen(request.user, team, timezone.now())
    return redirect(reverse("dashboard") + _asked(request, team))


def _asked(request: HttpRequest, team: Team) -> str:
    """The query of the dashboard as it is shown."""
    return query(split_of(request), **dict(range_of(request)), team=team.slug)


PAGES = (
    Page(
        route="dashboard/seen/",
        query=(*RANGE, *SPLIT),
        view=seen,
        name="dashboard_seen",
        needs={"POST": None},
    ),
)
