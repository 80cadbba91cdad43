"""Demo sessions, and the one rule for them.

While a team has no other sessions, they are like all others. Beside real ones they are left out of
every figure (`counts`) and, unless asked for, of every list (`listed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Q

from sessions.models.accounts.teams import Team
from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_uuid


def counts(team: Any, path: str = "") -> Q:
    """Rows whose session counts: real ones, and those of the demo if the team (its id, or a value
    given later) has no real one. `path` leads from the row to its session."""
    real = Session.objects.filter(team_id=team, demo=False)
    return Q(**{f"{path}demo": False}) | ~Q(Exists(real))


def listed(team: Any, path: str = "", *, demo: bool = False) -> Q:
    """Rows that a list shows: those that count, and with `demo` those of the demo too."""
    return Q() if demo else counts(team, path)


@dataclass(frozen=True, slots=True)
class DemoData:
    """The demo in a team: its sessions, and whether these are `alone`, and so count."""

    sessions: int
    alone: bool


def demo_data(team: Team) -> DemoData | None:
    """The demo in a team, if it is there."""
    many = len(_DEMO.rows(team=team.pk))
    return DemoData(many, not has_real(team.pk)) if many else None


_DEMO = Statement(
    lambda: Session.objects.filter(team_id=given_uuid("team"), demo=True).values_list("pk")
)


def has_real(team_id: Any, but: Any = None) -> bool:
    """Whether the team has a session that does not belong to the demo, `but` one aside."""
    return Session.objects.filter(team_id=team_id, demo=False).exclude(pk=but).exists()
