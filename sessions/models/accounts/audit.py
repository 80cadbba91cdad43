"""The audit log of a team: who did what, append-only and hash-chained."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One audited action; it holds names and numbers, never content.

    `actor` is a name, and `actor_id` the user's primary key if a person acted; `named` is the
    object, and `named_id` its primary key if it is a person: deleting an account must not change
    the log. `action` is "<concept>.<past participle>", such as "key.revoked".

    Entries of a team are numbered from 1, and each holds the hash of the one before
    (`actions/accounts/chain.py`). The database refuses updates and deletes, with one exception:
    names can be replaced by a pseudonym. The hash covers a salted digest of each part that may
    name a person; `*_salt` is that salt (32 hex digits), or the digest itself (64) once the part
    was replaced.
    """

    class Via(models.TextChoices):
        PERSON = "person"
        KEY = "key"
        COMMAND = "command"
        RULE = "rule"

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.PROTECT, related_name="audit")
    number = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    via = models.CharField(max_length=8, choices=Via.choices)
    actor = models.CharField(max_length=150)
    actor_id = models.BigIntegerField(null=True)
    ip = models.CharField(max_length=45, blank=True)
    actor_salt = models.CharField(max_length=64)
    action = models.CharField(max_length=40)
    named = models.CharField(max_length=200, blank=True, help_text="the object of the action")
    named_id = models.BigIntegerField(null=True)
    named_salt = models.CharField(max_length=64)
    detail = models.JSONField(default=dict)
    detail_salt = models.CharField(max_length=64)
    previous = models.CharField(max_length=64, help_text="hash of the entry before; empty at first")
    hash = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["team", "-at"], name="audit_newest")]
        constraints = [models.UniqueConstraint(fields=["team", "number"], name="audit_number")]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.named}"

    @property
    def demo(self) -> bool:
        """Whether it concerns nothing but the demo."""
        made = self.via == self.Via.RULE and self.actor == "demo"
        return made or self.action.startswith("demo.") or self.named.startswith("demo:")
