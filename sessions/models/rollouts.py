"""Rollouts as pages, programs and guardrails look them up."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce

from sessions.models.policies import Rollout
from sessions.models.teams import Team


def under_way(team: Team) -> Rollout | None:
    """The one rollout of a team that is running or paused."""
    rows = Rollout.objects.select_related("version__policy", "before__policy")
    return rows.filter(team=team, state__in=Rollout.UNDER_WAY).first()


def rollout_of_teams(teams: Iterable[Team], rollout_id: UUID) -> Rollout | None:
    """The rollout of that id in one of these teams."""
    rows = Rollout.objects.select_related(
        *("team__active", "version__policy", "before__policy"),
        *("simulation", "proposed_by", "decided_by"),
    )
    return rows.filter(team__in=list(teams), pk=rollout_id).first()


def topic_versions(ids: Iterable[UUID]) -> dict[UUID, tuple[UUID, int]]:
    """For pages that follow a rollout: its team, and a number that changes with it and with every
    session that is compared."""
    rows = Rollout.objects.filter(pk__in=list(ids)).annotate(
        moved=Coalesce(Sum("sessions__version"), 0), count=Count("sessions")
    )
    return {
        row.pk: (row.team_id, int(row.changed.timestamp() * 1000) + row.moved + row.count)
        for row in rows
    }
