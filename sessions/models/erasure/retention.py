"""What a team keeps for how long, and what it must not erase."""

from __future__ import annotations

import uuid

from django.db import models

from sessions.models.accounts.teams import Team


class Retention(models.Model):
    """How many days a team keeps the content of its sessions, and everything about them; null for
    ever. `looked` is when what is older was last erased.

    Sessions are archived `archive_days` after their last step; null for never. `archive_looked` is
    when these were last looked for.
    """

    team = models.OneToOneField(
        Team, primary_key=True, on_delete=models.CASCADE, related_name="retention"
    )
    content_days = models.PositiveIntegerField(null=True)
    session_days = models.PositiveIntegerField(null=True)
    changed = models.DateTimeField(auto_now=True)
    looked = models.DateTimeField(null=True)
    archive_days = models.PositiveIntegerField(null=True)
    archive_looked = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"retention of {self.team_id}"


class Hold(models.Model):
    """A legal hold: nothing of a session, a task or the team may be erased until it is released."""

    class Kind(models.TextChoices):
        SESSION = "session", "Session"
        TASK = "task", "Task"
        TEAM = "team", "Team"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="holds")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    session = models.UUIDField(null=True)
    task = models.CharField(max_length=300, blank=True)
    reason = models.CharField(max_length=300)
    by = models.CharField(max_length=150)
    created = models.DateTimeField(auto_now_add=True)
    released = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "released"], name="hold_in_force")]

    def __str__(self) -> str:
        return f"hold on a {self.kind}"
