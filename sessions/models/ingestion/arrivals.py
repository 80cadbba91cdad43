"""What agents sent: counts of accepted requests, and refused requests."""

from __future__ import annotations

import uuid

from django.db import models

from sessions.models.accounts.teams import Team


class AcceptedRequests(models.Model):
    """Accepted requests of one key for one session within an hour; kept for seven days.

    `key` is the key's prefix, empty for a person in a browser. `kind` names the operation, `form`
    the format of the messages.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="+"
    )
    hour = models.DateTimeField()
    key = models.CharField(max_length=16, blank=True)
    kind = models.CharField(max_length=10)
    form = models.CharField(max_length=10)
    requests = models.PositiveBigIntegerField(default=0)
    messages = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    last = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "session", "hour", "key", "kind", "form"], name="one_arrival_row"
            )
        ]
        indexes = [models.Index(fields=["team", "-last"], name="arrival_newest")]

    def __str__(self) -> str:
        return f"{self.requests} {self.kind} of {self.key or 'a person'}"


class RefusedRequest(models.Model):
    """A request that was refused, and how often the same one came; kept for 14 days.

    `body` is as sent, compressed, so that it can be applied later; empty if it was too large, was
    erased, or `kept` says why else. `problem` and `detail` are of the answer, secrets masked;
    `field` is the pointer in it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=16, blank=True)
    kind = models.CharField(max_length=10)
    method = models.CharField(max_length=6)
    path = models.CharField(max_length=1000)
    session = models.CharField(max_length=300, blank=True, help_text="external id, as in the path")
    status = models.PositiveSmallIntegerField()
    problem = models.CharField(max_length=200)
    detail = models.CharField(max_length=500, blank=True)
    field = models.CharField(max_length=300, blank=True)
    bytes = models.PositiveBigIntegerField(default=0)
    sha = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the body")
    body = models.BinaryField(default=b"")
    kept = models.CharField(max_length=200, blank=True, help_text="why there is no body")
    times = models.PositiveBigIntegerField(default=1)
    first = models.DateTimeField()
    last = models.DateTimeField()
    claimed = models.DateTimeField(null=True)
    applied = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-last"], name="refused_newest")]

    def __str__(self) -> str:
        return f"{self.status} {self.problem}"
