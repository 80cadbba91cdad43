"""Remember when a person last looked at a team's pages."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User

from sessions.models import Team, Visit
from sessions.models.web.statements import Statement, given_int, given_uuid

ENDS_AFTER = timedelta(minutes=30)
"""A visit ends after this long without a page being opened."""
NOTED_EVERY = timedelta(minutes=2)
"""Pages opened so soon after the last noted one write nothing, so a visit can end this much
earlier."""


def note_visit(user: User, team: Team, now: datetime) -> None:
    """Note that a person opens a page."""
    visit, first = Visit.objects.get_or_create(user=user, team=team, defaults={"latest": now})
    if first or now - visit.latest < NOTED_EVERY:
        return
    # Of two requests at once, one notes the visit: neither moves the end of the one before.
    noted = Visit.objects.filter(pk=visit.pk, latest=visit.latest)
    if now - visit.latest > ENDS_AFTER:
        noted.update(previous=visit.latest, latest=now)
    else:
        noted.update(latest=now)


def mark_seen(user: User, team: Team, now: datetime) -> None:
    """Begin a visit now: what arrived before it counts as seen."""
    begun = {"previous": now, "latest": now}
    Visit.objects.update_or_create(user=user, team=team, defaults=begun)


def visit_before(user: AbstractBaseUser | AnonymousUser, team: Team) -> datetime | None:
    """When the visit before the current one ended, to the second; None at the first, and for
    keys."""
    if not isinstance(user, User):
        return None
    ended = next(iter(_PREVIOUS.column(user=user.pk, team=team.pk)), None)
    return ended.replace(microsecond=0) if ended is not None else None


_PREVIOUS = Statement(
    lambda: Visit.objects.filter(user_id=given_int("user"), team_id=given_uuid("team")).values_list(
        "previous"
    )
)
