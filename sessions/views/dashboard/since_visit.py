"""What is new since a person's previous visit, on the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import Count, F, Q, Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from sessions.access import allowed
from sessions.actions.accounts.visits import known_visit, previous_visit
from sessions.actions.reviews.reservations import open_to
from sessions.figures import money
from sessions.models import Team
from sessions.views.web.filters import SessionFilters


class NewThings(NamedTuple):
    """A number of things in words, and the page that lists them; empty for none."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class SinceVisit:
    """When the previous visit ended, and what is new since then."""

    at: datetime
    news: list[NewThings]

    @property
    def label(self) -> str:
        """The day, or the time of today."""
        at = timezone.localtime(self.at)
        today = at.date() == timezone.localdate()
        return f"{at:%H:%M}" if today else f"{at:%b} {at.day}"


def since_visit(request: HttpRequest, team: Team) -> SinceVisit | None:
    """What is new for a person; None at their first visit, and for keys. An open page that
    updates itself does not go on with the visit."""
    user = request.user
    if not isinstance(user, User):
        return None
    updates = request.headers.get("HX-Request") is not None
    before = known_visit(user, team) if updates else previous_visit(user, team, timezone.now())
    if before is None:
        return None
    at = before.replace(microsecond=0)
    reviews = allowed(request, team, "review")
    return SinceVisit(at, list(_news(team, at, user if reviews else None)))


def _news(team: Team, at: datetime, reviewer: User | None) -> Iterator[NewThings]:
    filters = SessionFilters(stored=int(at.timestamp()) * 1000)
    found = filters.rows(team).order_by().aggregate(
        many=Count("pk"),
        cost=Sum("cost_microusd"),
        breaks=Sum("break_count"),
        bound=Count(
            "pk",
            filter=Q(cost_microusd=None)
            | Q(cost_at_least=True)
            | Q(usage_calls__lt=F("step_count")),
        ),
    )  # fmt: skip
    sessions = reverse("sessions")
    if found["many"]:
        yield NewThings(_many(found["many"], "session"), sessions + filters.address())
        if found["cost"] is not None:
            yield NewThings(f"{'≥' if found['bound'] else ''}{money(found['cost'])}", "")
    if reviewer is not None:
        waiting = open_to(team, reviewer).filter(created__gte=at).order_by().count()
        if waiting:
            yield NewThings(_many(waiting, "new compaction") + " to review", reverse("reviews"))
    if found["breaks"]:
        url = sessions + filters.address(flags=("breaks",))
        yield NewThings(_many(found["breaks"], "cache break"), url)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
