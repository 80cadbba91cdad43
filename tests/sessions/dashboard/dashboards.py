"""Sessions of a dashboard, and its figures."""

from __future__ import annotations

from typing import Any

from sessions.actions.accounts.teams import local_team
from sessions.models import Assessment, Session
from sessions.models.dashboard.dashboards import Dashboard
from sessions.models.dashboard.tiles import COUNTED
from sessions.models.web.periods import ending_now
from tests.sessions.web.test_periods import NOW, ms

WEEK = ending_now("7d", NOW)


def made(name: str, at: str | None, team: Any = None, **columns: Any) -> Session:
    """A session that happened at a time, with just these columns."""
    return Session.objects.create(
        team=team or local_team(), external_id=name, ended_at=ms(at) if at else None, **columns
    )


def assessed(session: Session, **columns: Any) -> None:
    Assessment.objects.create(session=session, steps=session.step_count, **columns)


def values(made: Dashboard, tile: str) -> dict[str, Any]:
    return {number.column.name: number.value for number in made.numbers(COUNTED[tile])}
