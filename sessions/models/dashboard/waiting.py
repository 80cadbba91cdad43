"""What waits for a person: approvals, failed jobs and a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from sessions.models.accounts.teams import Team
from sessions.models.budgets.budgets import Approval
from sessions.models.jobs.jobs import Job
from sessions.models.policies.policies import Rollout
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import QUIET_AFTER, SOURCE_LIVE, Session
from sessions.models.web.statements import Statement, given_time, given_uuid

MOST = 100
"""Most counted of each."""


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """How many calls wait for approval and how many jobs failed in the last 24 hours, each up to
    `MOST`; the rollout under way, as id, state, share in percent, and version."""

    approvals: int
    failed_jobs: int
    rollout: tuple[object, str, int, str] | None


def waiting_work(team: Team) -> WaitingWork:
    """Look up what waits in a team. Three queries."""
    since = timezone.now() - timedelta(days=1)
    rollout = _ROLLOUT.first(team=team.pk)
    return WaitingWork(
        len(_APPROVALS.rows(team=team.pk)),
        len(_FAILED.rows(team=team.pk, since=since)),
        (*rollout[:3], f"{rollout[3]}@{rollout[4]}") if rollout else None,
    )


def assessing(team: Team) -> bool:
    """Whether a job assesses sessions of a team."""
    return bool(_ASSESSING.rows(team=team.pk))


def running_sessions(team: Team) -> list[Session]:
    """The running sessions that moved last, up to `MOST`, with their policies and assessments."""
    return _RUNNING.rows(team=team.pk, since=timezone.now() - QUIET_AFTER)


_RUNNING = Statement(
    lambda: (
        Session.objects.filter(
            counts(given_uuid("team")),
            team_id=given_uuid("team"),
            source=SOURCE_LIVE,
            outcome="",
            changed__gte=given_time("since"),
        )
        .select_related("policy_version", "assessment")
        .order_by("-changed")[:MOST]
    )
)
_APPROVALS = Statement(
    lambda: Approval.objects.filter(
        counts(given_uuid("team"), "session__"),
        use__budget__team_id=given_uuid("team"),
        state=Approval.State.WAITING,
    ).values_list("pk")[:MOST]
)
_FAILED = Statement(
    lambda: Job.objects.filter(
        team_id=given_uuid("team"), state=Job.State.FAILED, created__gte=given_time("since")
    ).values_list("pk")[:MOST]
)
_ASSESSING = Statement(
    lambda: Job.objects.filter(
        team_id=given_uuid("team"),
        kind="assess",
        state__in=(Job.State.QUEUED, Job.State.RUNNING),
    ).values_list("pk")[:1]
)
_ROLLOUT = Statement(
    lambda: Rollout.objects.filter(
        team_id=given_uuid("team"), state__in=Rollout.UNDER_WAY
    ).values_list("pk", "state", "share", "version__policy__name", "version__number")
)
