"""Where a team's policies are in use: active, in rollouts, and by how many sessions."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F
from django.db.models.lookups import Exact

from sessions.models.accounts.teams import Team
from sessions.models.policies.policies import PolicyVersion, Rollout
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import SOURCE_LIVE, Session
from sessions.models.reviews.reviews import Review
from sessions.models.web.happened import OrElse

LOOKED_AT = 300
"""Most single-step sessions to look at, newest first."""


@dataclass(frozen=True, slots=True)
class UsePlace:
    """One place where a version is in use; `level` is the style of its badge."""

    text: str
    level: str
    rollout: Rollout | None = None


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """The use of a team's policy versions, by their primary keys."""

    active: int | None
    open: dict[int, Rollout]
    sessions: dict[int, int]

    def places(self, version: int) -> list[UsePlace]:
        """Where a version is in use, most important first."""
        found = []
        if version == self.active:
            found.append(UsePlace("active", "success"))
        rollout = self.open.get(version)
        if rollout is None:
            return found
        if rollout.state == Rollout.State.PROPOSED:
            return [*found, UsePlace("proposed", "info", rollout)]
        text = f"{rollout.state}, {rollout.share} % of new sessions"
        level = "warning" if rollout.state == Rollout.State.PAUSED else "running"
        return [*found, UsePlace(text, level, rollout)]


def use_of(team: Team, active: PolicyVersion | None) -> PolicyUse:
    """The use of each version of a team; `active` is the version for new sessions."""
    states = (Rollout.State.PROPOSED, *Rollout.UNDER_WAY)
    rows = Rollout.objects.filter(team=team, state__in=states).order_by("created")
    # A running rollout comes last and so wins over a proposal of the same version.
    rollouts = sorted(rows, key=lambda one: one.state != Rollout.State.PROPOSED)
    many = (
        Session.objects.for_team(team)
        .filter(counts(team.pk), policy_version__isnull=False)
        .order_by()
        .values_list("policy_version")
        .annotate(count=Count("*"))  # of the index alone
    )
    return PolicyUse(
        active.pk if active is not None else None,
        {one.version_id: one for one in rollouts},
        dict(many),
    )


def one_step(team: Team) -> dict[str, list[int]]:
    """Start times (ms) of the newest live sessions with exactly one step, by agent; no
    sub-agents."""
    rows = Session.objects.for_team(team).filter(
        Exact(OrElse(F("step_count"), 0), 1),  # as the index has it
        source=SOURCE_LIVE,
        parent_external_id="",
        demo=False,
    )
    found: dict[str, list[int]] = {}
    for agent, created in rows.order_by("-created").values_list("agent", "created")[:LOOKED_AT]:
        found.setdefault(agent, []).append(int(created.timestamp() * 1000))
    return found


def was_reviewed(version: PolicyVersion, use: PolicyUse) -> bool | None:
    """Whether people have reviewed summaries made under a version; None if no session uses it."""
    if not use.sessions.get(version.pk):
        return None
    given = Review.objects.filter(submitted__isnull=False)
    return given.filter(item__revision__policy_version=version).exists()
