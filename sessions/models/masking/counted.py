"""Sums of what was masked before it was stored."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Sum

from sessions.models.accounts.teams import Team
from sessions.models.masking.masking import MaskedCount
from sessions.models.record.sessions import Session


def of_session(session: Session) -> dict[str, int]:
    """Masked places of a session, by rule."""
    rows = MaskedCount.objects.filter(session=session).order_by("name")
    return dict(rows.values_list("name", "count"))


def of_team(team: Team, since: datetime) -> list[tuple[str, int, int]]:
    """Rules with their masked places and sessions, of sessions masked since a time."""
    rows = MaskedCount.objects.filter(team=team, at__gte=since).values("name")
    sums = rows.annotate(places=Sum("count"), many=Count("session")).order_by("name")
    return list(sums.values_list("name", "places", "many"))


def newest(team: Team, since: datetime, most: int) -> list[tuple[Session, dict[str, int]]]:
    """The sessions that were masked last, with their masked places by rule."""
    rows = MaskedCount.objects.filter(team=team, at__gte=since).order_by("-at")
    ids = list(dict.fromkeys(rows.values_list("session", flat=True)[: most * 10]))[:most]
    found = Session.objects.for_team(team).in_bulk(ids)
    return [(found[pk], of_session(found[pk])) for pk in ids if pk in found]
