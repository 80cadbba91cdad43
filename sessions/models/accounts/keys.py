"""API keys of a team, and stored responses for idempotent requests."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Subquery

from sessions.models.accounts.teams import ROLE_MAY, Membership


class KeyRows(models.QuerySet["Key"]):
    """Keys of teams."""

    def with_owner_role(self) -> KeyRows:
        """Annotate the role that the owner has in the team now, as `owner_role`, and when single
        sign-on last gave it, as `owner_vouched`."""
        held = Membership.objects.filter(
            user=OuterRef("owner"), team=OuterRef("team"), user__is_active=True
        )
        return self.annotate(
            owner_role=Subquery(held.values("role")[:1]),
            owner_vouched=Subquery(held.values("vouched")[:1]),
        )


class Key(models.Model):
    """A bearer key: shown once on creation, stored as a hash, found by its prefix.

    `scopes` are `read`, `write` and `erase`. A revoked key keeps its row for the audit log. A key
    with an owner, who is the person that created or took it over, works only while that person may
    create keys in the team, and signs in often enough if single sign-on gave them access; it erases
    only while that person may. One without belongs to the team: a service account.
    """

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the whole token")
    name = models.CharField(max_length=100, blank=True)
    scopes = models.JSONField(default=list)
    created = models.DateTimeField(auto_now_add=True)
    used = models.DateTimeField(null=True, help_text="last use, to the minute")
    revoked = models.DateTimeField(null=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="keys"
    )
    expires = models.DateTimeField(null=True)

    objects = KeyRows.as_manager()
    owner_role: str | None
    owner_vouched: datetime | None

    def __str__(self) -> str:
        return self.prefix

    @property
    def valid_scopes(self) -> list[str]:
        """The scopes that count now: not `erase` if the owner may not erase. Needs
        `with_owner_role`."""
        if self.owner_id is None or "erase" in ROLE_MAY.get(self.owner_role or "", ()):
            return list(self.scopes)
        return [scope for scope in self.scopes if scope != "erase"]

    def why_ended(self, now: datetime) -> str:
        """Why the key does not work; empty if it does. Needs `with_owner_role`."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= now:
            return "expired"
        if self.owner_id is not None and "keys" not in ROLE_MAY.get(self.owner_role or "", ()):
            return "its owner may no longer have keys"
        days = settings.SIGN_ON_KEY_DAYS
        vouched = self.owner_vouched if days and self.owner_id is not None else None
        if vouched is not None and vouched <= now - timedelta(days=days):
            return f"its owner has not signed in for {days} days"
        return ""


class Answer(models.Model):
    """The response to a request with an Idempotency-Key, returned again when the request is
    retried.

    Written in the same transaction as the request's changes. `request` is the SHA-256 of method,
    path and body; reusing a key with a different request is refused.
    """

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64)
    session = models.UUIDField(null=True, help_text="the session that the response is about")
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
