"""Tunings: searches for policies with lower cost and higher recall."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class TuningQuerySet(models.QuerySet["Tuning"]):
    """Tunings, scoped by team."""

    def for_team(self, team: models.Model) -> TuningQuerySet:
        """The team's tunings; requests must reach tunings through this."""
        return self.filter(team=team)


class Tuning(models.Model):
    """A search that starts from a policy version; the request never changes, trials are added.

    `sessions` are used by the search; `held` are held-out sessions used only to check its results
    at the end. Both are UUIDs. `limit` is the maximum number of trials. `recorded` is the recall of
    `sessions` as recorded: `needs`, and the shares `in_context`, `named` and `lost`, null without
    needs; null until computed.
    """

    class Objective(models.TextChoices):
        CHEAP = "cheap", "cheap"
        LEAN = "lean", "lean"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="tunings"
    )
    job = models.ForeignKey(
        "agent_sessions.Job", null=True, on_delete=models.SET_NULL, related_name="tunings"
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    base = models.ForeignKey(
        "agent_sessions.PolicyVersion", on_delete=models.PROTECT, related_name="+"
    )
    objective = models.CharField(max_length=5, choices=Objective.choices)
    chosen = models.JSONField(default=dict)
    sessions = models.JSONField(default=list)
    held = models.JSONField(default=list)
    limit = models.PositiveIntegerField()
    recorded = models.JSONField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    objects = TuningQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created"], name="tuning_newest")]

    def __str__(self) -> str:
        return f"from {self.base} over {len(self.sessions)} sessions"


class TuningTrial(models.Model):
    """One policy tried by a search; `number` counts from 1.

    `figures` are sums over the search's sessions, `held` over the held-out ones, null if not
    computed. `name` is the preset's name for starting policies, else empty.
    """

    tuning = models.ForeignKey(Tuning, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=120, blank=True)
    document = models.JSONField(default=dict)
    figures = models.JSONField(default=dict)
    held = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tuning", "number"], name="trial_once_per_tuning")
        ]

    def __str__(self) -> str:
        return f"trial {self.number}"
