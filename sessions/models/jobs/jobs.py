"""Background jobs: what to do, who does it, and progress."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, scoped by team."""

    def for_team(self, team: models.Model) -> JobQuerySet:
        """The team's jobs; requests must reach jobs through this."""
        return self.filter(team=team)


class Job(models.Model):
    """The durable record of one background job; messages to workers carry only its id.

    It is the outbox (written in the transaction that requests the work) and the lease: a worker
    that claims it gets a token, and writes with an older token match no row. `version` rises with
    every change, for live pages.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        PARTIAL = "partial"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=40)
    payload = models.JSONField(default=dict, help_text="ids and numbers, never content")
    dedupe = models.CharField(
        max_length=200, blank=True, help_text="one unfinished job per team and key"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(
        default=0, help_text="attempts that ended with their server or worker; they do not count"
    )
    token = models.UUIDField(null=True, help_text="of the attempt that may write")
    lease_until = models.DateTimeField(null=True)
    wake_after = models.DateTimeField(
        default=timezone.now, help_text="when the sweeper may wake a worker for a queued job"
    )
    done_units = models.PositiveBigIntegerField(default=0)
    total_units = models.PositiveBigIntegerField(null=True)
    unit = models.CharField(max_length=40, blank=True)
    result = models.JSONField(null=True)
    problem = models.JSONField(null=True, help_text="title, detail, advice")
    version = models.PositiveBigIntegerField(default=1)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["state", "wake_after"], name="job_to_wake"),
            models.Index(fields=["team", "-created"], name="job_of_team"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "dedupe"],
                condition=models.Q(state__in=["queued", "running"]) & ~models.Q(dedupe=""),
                name="one_unfinished_job_per_key",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def is_finished(self) -> bool:
        """Whether the job has reached a final state."""
        return self.state not in (self.State.QUEUED, self.State.RUNNING)
