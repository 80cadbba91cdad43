"""What a team's model calls of the last days took, for a projection."""

from __future__ import annotations

from django.db.models import BigIntegerField, Count, F, Q, Sum
from django.db.models.functions import Coalesce

from compaction.spending import Projection, project
from sessions.models.sessions import ModelCall
from sessions.models.teams import Team

DAYS = 7
"""Days that a projection goes by."""

_PARTS = ("cache_read", "cache_write_5m", "cache_write_1h", "output")
_DAY_MS = 86_400_000


def projection_of(team: Team, now: int) -> Projection | None:
    """What days like the last seven come to; None where no call of theirs reported its usage.

    `now` is in ms since the epoch. The demo's sessions are left out.
    """
    since = now - DAYS * _DAY_MS
    calls = ModelCall.objects.filter(session__team=team, session__demo=False, at__gt=since)
    parts = sum((Coalesce(F(name), 0) for name in _PARTS), start=F("fresh"))
    found = calls.filter(at__lte=now).aggregate(
        sessions=Count("session", distinct=True),
        calls=Count("pk"),
        reported=Count("pk", filter=Q(fresh__isnull=False)),
        tokens=Sum(parts, filter=Q(fresh__isnull=False), output_field=BigIntegerField()),
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
