"""Demo sessions: they count in a team's figures only while it has no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Q

from sessions.models.accounts.teams import Team
from sessions.models.record.sessions import Session


def counts(team: Any, path: str = "") -> Q:
    """Rows whose session counts: real ones, and those of the demo if the team (its id, or a value
    given later) has no real one. `path` leads from the row to its session."""
    real = Session.objects.filter(team_id=team, demo=False)
    return Q(**{f"{path}demo": False}) | ~Q(Exists(real))


@dataclass(frozen=True, slots=True)
class DemoData:
    """The demo in a team: its sessions, and whether these are `alone`, and so count."""

    sessions: int
    alone: bool


def demo_data(team: Team) -> DemoData | None:
    """The demo in a team, if it is there."""
    many = Session.objects.filter(team=team, demo=True).count()
    return DemoData(many, not has_real(team.pk)) if many else None


def uncounted(team: Team, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the demo sessions that do not count; none while the demo is alone."""
    rows = Session.objects.filter(~counts(team.pk), team=team).order_by()
    return list(rows.values_list(*columns))


def has_real(team_id: Any, but: Any = None) -> bool:
    """Whether the team has a session that does not belong to the demo, `but` one aside."""
    return Session.objects.filter(team_id=team_id, demo=False).exclude(pk=but).exists()
