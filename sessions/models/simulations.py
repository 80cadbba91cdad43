"""Simulations: what policy versions would have made of chosen recorded sessions."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class SimulationQuerySet(models.QuerySet["Simulation"]):
    """Simulations, reached through their team."""

    def for_team(self, team: models.Model) -> SimulationQuerySet:
        """The only way from a request to simulations."""
        return self.filter(team=team)


class Simulation(models.Model):
    """Policy versions over recorded sessions; what was asked never changes, results come in.

    `chosen` says how its sessions were chosen: {"by": "query" | "sample" | "hand", ...}. Every
    session is simulated under every one of `versions`, and told as it was recorded. `draft` is
    the version that it is about, `active` what new sessions began with when it was asked for.
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
    sessions = models.JSONField(default=list, help_text="UUIDs, in the order they are simulated")
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
    """One session under one policy version; `version` null: as it was recorded (unmanaged).

    `state` says of which records and which engine the figures are: a later simulation of the same
    takes them over. `figures` are those of `simulate` (tokens, micro-dollars, shares), `worst` the
    needs that went worst, each with its step. `problem` is set where it could not be simulated.
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
    worst = models.JSONField(default=list)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["simulation", "session", "version"], name="one_result_per_version"
            ),
            models.UniqueConstraint(
                fields=["simulation", "session"],
                condition=models.Q(version=None),
                name="one_unmanaged_result",
            ),
        ]
        indexes = [models.Index(fields=["session", "version", "state"], name="result_of_state")]

    def __str__(self) -> str:
        return f"{self.session_id} under {self.version_id or 'nothing'}"
