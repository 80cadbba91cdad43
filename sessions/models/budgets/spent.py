"""Spending of a team's model calls in the last days, for projections."""

from __future__ import annotations

from django.db.models import BigIntegerField, Count, F, Q, Sum
from django.db.models.functions import Coalesce

from compaction.budget.spending import Projection, project
from sessions.models.accounts.teams import Team
from sessions.models.record.messages import ModelCall

DAYS = 7
"""Length of the period a projection is based on, in days."""

_PARTS = ("cache_read", "cache_write_5m", "cache_write_1h", "output")
_DAY_MS = 86_400_000


def projection_of(team: Team, now: int) -> Projection | None:
    """Project spending from the last seven days; None if none of their calls reported usage.

    `now` is in ms since the epoch. Demo sessions are excluded.
    """
    since = now - DAYS * _DAY_MS
    calls = ModelCall.objects.filter(session__team=team, session__demo=False, at__gt=since)
    parts = sum((Coalesce(F(name), 0) for name in _PARTS), start=F("uncached"))
    found = calls.filter(at__lte=now).aggregate(
        sessions=Count("session", distinct=True),
        calls=Count("pk"),
        reported=Count("pk", filter=Q(uncached__isnull=False)),
        tokens=Sum(parts, filter=Q(uncached__isnull=False), output_field=BigIntegerField()),
        priced=Count("cost_microusd"),
        microusd=Sum("cost_microusd"),
    )
    return project(
        DAYS,
        found["sessions"],
        found["calls"],
        (found["reported"], found["tokens"] or 0),
        (found["priced"], found["microusd"] or 0),
    )
