"""Where the policies of a team are in use: active, on their way, and by how many sessions."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from sessions.models.policies import PolicyVersion, Rollout
from sessions.models.reviews import Review
from sessions.models.sessions import SOURCE_LIVE, Session
from sessions.models.teams import Team

LOOKED_AT = 300
"""Newest sessions of a single step that are looked at."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place where a version is in use; `level` is the look of its badge."""

    text: str
    level: str
    rollout: Rollout | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """The use that a team makes of its policy versions, by the keys of their rows."""

    active: int | None
    open: dict[int, Rollout]
    sessions: dict[int, int]

    def places(self, version: int) -> list[Place]:
        """Where a version is in use, what matters most first."""
        found = []
        if version == self.active:
            found.append(Place("active", "success"))
        rollout = self.open.get(version)
        if rollout is None:
            return found
        if rollout.state == Rollout.State.PROPOSED:
            return [*found, Place("proposed", "info", rollout)]
        text = f"{rollout.state}, {rollout.share} % of new sessions"
        level = "warning" if rollout.state == Rollout.State.PAUSED else "running"
        return [*found, Place(text, level, rollout)]


def use_of(team: Team, active: PolicyVersion | None) -> Use:
    """Where each version of a team is in use; `active` is what new sessions begin with."""
    states = (Rollout.State.PROPOSED, *Rollout.UNDER_WAY)
    rows = Rollout.objects.filter(team=team, state__in=states).order_by("created")
    # What is under way comes last and so stands, where the same version is also proposed again.
    rollouts = sorted(rows, key=lambda one: one.state != Rollout.State.PROPOSED)
    counts = (
        Session.objects.for_team(team)
        .filter(policy_version__isnull=False)
        .order_by()
        .values_list("policy_version")
        .annotate(count=Count("pk"))
    )
    return Use(
        active.pk if active is not None else None,
        {one.version_id: one for one in rollouts},
        dict(counts),
    )


def one_step(team: Team) -> dict[str, list[int]]:
    """When the newest live sessions of exactly one step began (ms), by agent; no sub-agents."""
    rows = Session.objects.for_team(team).filter(
        source=SOURCE_LIVE, step_count=1, parent_external_id="", demo=False
    )
    found: dict[str, list[int]] = {}
    for agent, created in rows.order_by("-created").values_list("agent", "created")[:LOOKED_AT]:
        found.setdefault(agent, []).append(int(created.timestamp() * 1000))
    return found


def was_reviewed(version: PolicyVersion, use: Use) -> bool | None:
    """Whether people looked at summaries of a version; None where no session runs under it."""
    if not use.sessions.get(version.pk):
        return None
    given = Review.objects.filter(submitted__isnull=False)
    return given.filter(item__revision__policy_version=version).exists()
