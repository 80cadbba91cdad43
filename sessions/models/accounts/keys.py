"""API keys of a team, and stored responses for idempotent requests."""

from __future__ import annotations

from django.db import models


class Key(models.Model):
    """A bearer key: shown once on creation, stored as a hash, found by its prefix.

    `scopes` are `read` and `write`. A revoked key keeps its row for the audit log.
    """

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the whole token")
    name = models.CharField(max_length=100, blank=True)
    scopes = models.JSONField(default=list)
    created = models.DateTimeField(auto_now_add=True)
    used = models.DateTimeField(null=True, help_text="last use, to the minute")
    revoked = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.prefix


class Answer(models.Model):
    """The response to a request with an Idempotency-Key, returned again when the request is
    retried.

    Written in the same transaction as the request's changes. `request` is the SHA-256 of method,
    path and body; reusing a key with a different request is refused.
    """

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.BinaryField(default=b"")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "key"], name="idempotency_key_once_per_team")
        ]
        indexes = [models.Index(fields=["created"], name="answer_age")]

    def __str__(self) -> str:
        return f"{self.status} to {self.key}"
