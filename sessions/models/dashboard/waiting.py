"""What waits for a person: approvals and a rollout."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.models.accounts.teams import Team
from sessions.models.budgets.budgets import Approval
from sessions.models.policies.policies import Rollout
from sessions.models.record.demo_data import counts
from sessions.models.web.statements import Statement, given_uuid

MOST = 100
"""Most counted of each."""


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """How many calls wait for approval, up to `MOST`; the rollout under way, as id, state, share in
    percent, and version."""

    approvals: int
    rollout: tuple[object, str, int, str] | None


def waiting_work(team: Team) -> WaitingWork:
    """Look up what waits in a team. Two queries."""
    rollout = _ROLLOUT.first(team=team.pk)
    return WaitingWork(
        len(_APPROVALS.rows(team=team.pk)),
        (*rollout[:3], f"{rollout[3]}@{rollout[4]}") if rollout else None,
    )


_APPROVALS = Statement(
    lambda: Approval.objects.filter(
        counts(given_uuid("team"), "session__"),
        use__budget__team_id=given_uuid("team"),
        state=Approval.State.WAITING,
    ).values_list("pk")[:MOST]
)
_ROLLOUT = Statement(
    lambda: Rollout.objects.filter(
        team_id=given_uuid("team"), state__in=Rollout.UNDER_WAY
    ).values_list("pk", "state", "share", "version__policy__name", "version__number")
)
