"""The audit log of a team: who did what, append-only."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One audited action. The database refuses updates; it holds names and numbers, never content.

    `actor` is a name, and `actor_id` the user's primary key if a person acted: deleting an account
    must not change the log. `action` is "<concept>.<past participle>", such as "key.revoked".
    """

    class Via(models.TextChoices):
        PERSON = "person"
        KEY = "key"
        COMMAND = "command"
        RULE = "rule"

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="audit")
    at = models.DateTimeField(auto_now_add=True)
    via = models.CharField(max_length=8, choices=Via.choices)
    actor = models.CharField(max_length=150)
    actor_id = models.BigIntegerField(null=True)
    ip = models.CharField(max_length=45, blank=True)
    action = models.CharField(max_length=40)
    named = models.CharField(max_length=200, blank=True, help_text="the object of the action")
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["team", "-at"], name="audit_newest")]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.named}"

    @property
    def demo(self) -> bool:
        """Whether it concerns nothing but the demo."""
        made = self.via == self.Via.RULE and self.actor == "demo"
        return made or self.action.startswith("demo.") or self.named.startswith("demo:")
