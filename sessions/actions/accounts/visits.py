"""Remember when a person last looked at a team's dashboard."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User

from sessions.models import Team, Visit

ENDS_AFTER = timedelta(minutes=30)
"""A visit ends after this long without the page being opened."""


def previous_visit(user: User, team: Team, now: datetime) -> datetime | None:
    """Note that a person opens the dashboard; return when their previous visit ended, None at the
    first."""
    visit, first = Visit.objects.get_or_create(user=user, team=team, defaults={"latest": now})
    if first:
        return None
    if now - visit.latest > ENDS_AFTER:
        visit.previous = visit.latest
    visit.latest = now
    visit.save(update_fields=["latest", "previous"])
    return visit.previous


def known_visit(user: User, team: Team) -> datetime | None:
    """When the visit before this one ended, without noting that the page was opened."""
    visit = Visit.objects.filter(user=user, team=team).first()
    return visit.previous if visit is not None else None
