"""Work that is done outside a request: what is to do, who does it, how far it is."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, reached through their team."""

    def for_team(self, team: models.Model) -> JobQuerySet:
        """The only way from a request to jobs."""
        return self.filter(team=team)


class Job(models.Model):
    """The durable record of one piece of work; messages to workers carry only its id.

    It is the outbox (written in the transaction that wants the work) and the lease: whoever
    claims it gets a token of its own, and writes of an older holder find no row. `version`
    rises with every change, for the live pages.
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
    token = models.UUIDField(null=True, help_text="of the attempt that may write")
    lease_until = models.DateTimeField(null=True)
    wake_after = models.DateTimeField(
        default=timezone.now, help_text="the sweeper wakes a worker for a queued job from then on"
    )
    done_units = models.PositiveBigIntegerField(default=0)
    total_units = models.PositiveBigIntegerField(null=True)
    unit = models.CharField(max_length=40, blank=True)
    result = models.JSONField(null=True)
    problem = models.JSONField(null=True, help_text="title, detail, what to do")
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
        """True once nothing more will happen to it."""
        return self.state not in (self.State.QUEUED, self.State.RUNNING)
