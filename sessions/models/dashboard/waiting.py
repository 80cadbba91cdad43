"""What waits for a person: approvals, reviews, a rollout, and sessions near their limit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from sessions.models.accounts.teams import Team
from sessions.models.budgets.budgets import Approval
from sessions.models.dashboard.matching import NEAR_LIMIT
from sessions.models.policies.policies import Rollout
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import QUIET_AFTER, SOURCE_LIVE, Session
from sessions.models.web.statements import Statement, given_time, given_uuid

MOST = 100
"""Most counted of each."""


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """How many calls wait for approval and how many running sessions are near their limit, up to
    `MOST`; the rollout under way, as id, state, share in percent, and version."""

    approvals: int
    near_limit: int
    rollout: tuple[object, str, int, str] | None


def waiting_work(team: Team, now: datetime) -> WaitingWork:
    """Look up what waits in a team. Three queries."""
    rollout = _ROLLOUT.first(team=team.pk)
    return WaitingWork(
        len(_APPROVALS.rows(team=team.pk)),
        len(_NEAR.rows(team=team.pk, since=now - QUIET_AFTER)),
        (*rollout[:3], f"{rollout[3]}@{rollout[4]}") if rollout else None,
    )


_APPROVALS = Statement(
    lambda: Approval.objects.filter(
        use__budget__team_id=given_uuid("team"), state=Approval.State.WAITING
    ).values_list("pk")[:MOST]
)
_ROLLOUT = Statement(
    lambda: Rollout.objects.filter(
        team_id=given_uuid("team"), state__in=Rollout.UNDER_WAY
    ).values_list("pk", "state", "share", "version__policy__name", "version__number")
)
_NEAR = Statement(
    lambda: Session.objects.filter(
        counts(given_uuid("team")),
        team_id=given_uuid("team"),
        source=SOURCE_LIVE,
        outcome="",
        changed__gte=given_time("since"),
        window__gt=0,
        peak_tokens__gte=F("window") * NEAR_LIMIT,
    ).values_list("pk")[:MOST]
)
