"""Tunings: searches for policies that cost less and keep more of what was needed later."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class TuningQuerySet(models.QuerySet["Tuning"]):
    """Tunings, reached through their team."""

    def for_team(self, team: models.Model) -> TuningQuerySet:
        """The only way from a request to tunings."""
        return self.filter(team=team)


class Tuning(models.Model):
    """A search that begins from a policy version; what was asked never changes, trials come in.

    `sessions` are those that the search looks at, `held` those that it never sees: what it found
    is put to them at the end. Both are UUIDs. `limit` is the most policies that are tried.
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
    created = models.DateTimeField(auto_now_add=True)

    objects = TuningQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team", "-created"], name="tuning_newest")]

    def __str__(self) -> str:
        return f"from {self.base} over {len(self.sessions)} sessions"


class TuningTrial(models.Model):
    """One policy that a search tried; `number` from 1 in the order of trials.

    `figures` are sums over the search's sessions, `held` over those it never saw, null where they
    were not worked out. `name` is a preset's for those that a search begins with, else empty.
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
