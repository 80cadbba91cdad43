"""Simulations of policy versions over recorded sessions."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from sessions.models.jobs.jobs import Job
from sessions.models.record.sessions import Session
from sessions.models.web.shown import ShownJSON


def simulation_key(session: Session, version: int | str = "") -> str:
    """The key of the unfinished job that simulates a policy version (its primary key) over a
    session; without a version, what the keys of all of the session's begin with."""
    return f"simulate:{session.pk}:{version}"


class SimulationQuerySet(models.QuerySet["Simulation"]):
    """Simulations, scoped by team."""

    def for_team(self, team: models.Model) -> SimulationQuerySet:
        """The team's simulations; requests must reach simulations through this."""
        return self.filter(team=team)

    def ended(self) -> SimulationQuerySet:
        """Those to which no result is added any more."""
        return self.exclude(job__state__in=(Job.State.QUEUED, Job.State.RUNNING))


class Simulation(models.Model):
    """Policy versions simulated over recorded sessions; the request never changes, results are
    added.

    `chosen` records how sessions were selected: {"by": "query" | "sample" | "hand", ...}. Every
    session is simulated under each of `versions` and compared with its recorded baseline. `draft`
    is the version under test, `active` the version for new sessions when it was started.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="simulations"
    )
    job = models.ForeignKey(
        "agent_sessions.Job", null=True, on_delete=models.SET_NULL, related_name="simulations"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    note = models.CharField(max_length=300, blank=True)
    chosen = models.JSONField(default=dict)
    sessions = models.JSONField(default=list, help_text="UUIDs, in simulation order")
    versions = models.ManyToManyField("agent_sessions.PolicyVersion", related_name="simulations")
    draft = models.ForeignKey(
        "agent_sessions.PolicyVersion", on_delete=models.PROTECT, related_name="+"
    )
    active = models.ForeignKey(
        "agent_sessions.PolicyVersion", on_delete=models.PROTECT, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    objects = SimulationQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created"], name="simulation_newest")]

    def __str__(self) -> str:
        return f"{self.draft} over {len(self.sessions)} sessions"


class SimulationResult(models.Model):
    """The figures of one session under one policy version, or as recorded (`version` null).

    `state` identifies the records and engine behind the figures, so that a later simulation can
    reuse them. `figures` are those of `simulate` (tokens, micro-dollars, shares), `worst` the worst
    needs with their steps. `problem` is set if the session could not be simulated.
    """

    simulation = models.ForeignKey(Simulation, on_delete=models.CASCADE, related_name="results")
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="+"
    )
    version = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    state = models.CharField(max_length=64)
    figures = models.JSONField(default=dict)
    worst = ShownJSON(default=list)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["simulation", "session", "version"], name="one_result_per_version"
            ),
            models.UniqueConstraint(
                fields=["simulation", "session"],
                condition=models.Q(version=None),
                name="one_recorded_result",
            ),
        ]
        indexes = [models.Index(fields=["session", "version", "state"], name="result_of_state")]

    def __str__(self) -> str:
        return f"{self.session_id} under {self.version_id or 'no policy'}"
