"""Sums of what agents sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Count, F, Max, Sum
from django.utils import timezone

from sessions.models.accounts.teams import Team
from sessions.models.ingestion.arrivals import AcceptedRequests, RefusedRequest
from sessions.models.record.sessions import Session

GROUPS = 100
"""Most groups shown, newest first."""


def accepted_by_group(team: Team, hours: int) -> list[dict[str, Any]]:
    """Accepted requests by key, agent, kind and format, newest first; whole hours."""
    since = timezone.now() - timedelta(hours=hours)
    rows = (
        AcceptedRequests.objects.filter(team=team, last__gte=since)
        .values("key", "kind", "form", agent=F("session__agent"))
        .annotate(
            all_requests=Sum("requests"),
            all_messages=Sum("messages"),
            all_bytes=Sum("bytes"),
            sessions=Count("session", distinct=True),
            newest=Max("last"),
        )
        .order_by("-newest")
    )
    return [dict(row) for row in rows[:GROUPS]]


def refused_count(team: Team, hours: int) -> int:
    """How often a kept refused request came, if it came within these hours."""
    since = timezone.now() - timedelta(hours=hours)
    rows = RefusedRequest.objects.filter(team=team, last__gte=since)
    return rows.aggregate(all=Sum("times"))["all"] or 0


class NotStored(NamedTuple):
    """Model calls of a session that were refused, and the newest refusal."""

    calls: int
    newest: RefusedRequest


def not_stored(session: Session) -> NotStored | None:
    """The refused appends of a session that were not applied since; None if there are none.

    Each is a model call: clients append a reply with what led to it. Equal requests are one row.
    """
    rows = RefusedRequest.objects.filter(
        team=session.team_id,
        kind="messages",
        session__in=(session.external_id, str(session.pk)),
        applied=None,
    )
    newest = rows.defer("body").order_by("-last").first()
    return None if newest is None else NotStored(rows.count(), newest)
