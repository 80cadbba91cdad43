"""Erasures, what each has still to do, and the sessions that must not come back."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.crypto import salted_hmac

from sessions.models.accounts.teams import Team


class Erasure(models.Model):
    """A request to erase something of a team for good, and its receipt once nothing is left.

    `kind` is what was named: a session, task, metadata, text, member or the team; or `retention`.
    `rule` names it without content (hashes with `salt`). With `content_only`, sessions keep their
    figures. `sessions` and `blobs` list its targets; the rows of blobs go with its end.
    `counts` are rows deleted so far, by table. `receipt` is canonical JSON.
    """

    class Kind(models.TextChoices):
        SESSION = "session"
        TASK = "task"
        METADATA = "metadata"
        TEXT = "text"
        MEMBER = "member"
        TEAM = "team"
        RETENTION = "retention"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="erasures")
    job = models.ForeignKey(
        "agent_sessions.Job", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    rule = models.JSONField(default=dict, help_text="what was named, hashed with the salt")
    content_only = models.BooleanField(default=False)
    member = models.BigIntegerField(null=True, help_text="user whose data is erased")
    via = models.CharField(max_length=8)
    by = models.CharField(max_length=150)
    reason = models.CharField(max_length=300, blank=True)
    salt = models.CharField(max_length=32)
    counts = models.JSONField(default=dict)
    receipt = models.TextField(blank=True)
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-created"], name="erasure_newest")]

    def __str__(self) -> str:
        return f"erasure {self.pk} of a {self.kind}"


class ErasedSession(models.Model):
    """A session of an erasure. Its id and external id are refused from then on.

    `name` is a keyed hash of the external id; it is empty if only the content is erased. `gone` is
    set once no row of it is left.
    """

    erasure = models.ForeignKey(Erasure, on_delete=models.CASCADE, related_name="sessions")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.UUIDField()
    name = models.CharField(max_length=64, blank=True)
    named = models.CharField(max_length=64, help_text="the external id, hashed with the salt")
    gone = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["erasure", "session"], name="session_erased_once")
        ]
        indexes = [
            models.Index(fields=["team", "name"], name="erased_name"),
            models.Index(fields=["session"], name="erased_session"),
        ]

    def __str__(self) -> str:
        return f"{self.session} of {self.erasure_id}"


class ErasedBlob(models.Model):
    """Content that an unfinished erasure must look at: erased unless something else uses it."""

    erasure = models.ForeignKey(
        Erasure, on_delete=models.CASCADE, related_name="blobs", db_index=False
    )
    sha = models.CharField(max_length=64)
    erased = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["erasure", "sha"], name="blob_erased_once")]

    def __str__(self) -> str:
        return f"blob of {self.erasure_id}"


def keyed_name(team: uuid.UUID, external_id: str) -> str:
    """The hash under which an erased external id is remembered; guessing it takes the server's
    key."""
    made = salted_hmac(
        "contextlab.erased", f"{team}\n{external_id}", settings.SECRET_KEY, algorithm="sha256"
    )
    return made.hexdigest()
