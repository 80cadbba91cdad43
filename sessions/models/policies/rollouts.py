"""Queries for rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce

from sessions.models.accounts.teams import Team
from sessions.models.policies.policies import Rollout


def under_way(team: Team) -> Rollout | None:
    """The team's running or paused rollout, if any."""
    rows = Rollout.objects.select_related("version__policy", "before__policy")
    return rows.filter(team=team, state__in=Rollout.UNDER_WAY).first()


def rollout_of_teams(teams: Iterable[Team], rollout_id: UUID) -> Rollout | None:
    """Look up a rollout by id in these teams."""
    rows = Rollout.objects.select_related(
        *("team__active", "version__policy", "before__policy"),
        *("simulation", "proposed_by", "decided_by"),
    )
    return rows.filter(team__in=list(teams), pk=rollout_id).first()


def topic_versions(ids: Iterable[UUID]) -> dict[UUID, tuple[UUID, int]]:
    """Map rollouts to their team and a number that changes with the rollout and every session
    compared; live pages poll it."""
    rows = Rollout.objects.filter(pk__in=list(ids)).annotate(
        moved=Coalesce(Sum("sessions__version"), 0), count=Count("sessions")
    )
    return {
        row.pk: (row.team_id, int(row.changed.timestamp() * 1000) + row.moved + row.count)
        for row in rows
    }
