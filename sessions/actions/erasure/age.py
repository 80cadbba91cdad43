"""How old sessions are, for retention and archiving: by their last step; without times, by their
import."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet

from sessions.models import Session, Team
from sessions.models.record.sessions import QUIET_AFTER
from sessions.models.web.happened import happened


def older_than(team: Team, days: int, now: datetime) -> QuerySet[Session, Session]:
    """A team's sessions whose age is more than so many days, without the demo and what is being
    erased."""
    before = int((now - timedelta(days=days)).timestamp() * 1000)
    rows = Session.objects.for_team(team).filter(demo=False, erasing=None)
    return rows.annotate(at=happened()).filter(at__lt=before)


def at_work(now: datetime) -> Q:
    """Sessions that got something in the last minutes, by an agent or an import: more may come, so
    they are left alone for now, however old they are."""
    return Q(changed__gte=now - QUIET_AFTER)


def ids(rows: QuerySet[Session, Session]) -> QuerySet[Session, UUID]:
    """The ids of sessions, in order."""
    return rows.order_by("pk").values_list("pk", flat=True)
