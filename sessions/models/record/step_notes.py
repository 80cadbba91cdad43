"""Notes that people leave on steps of a session."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions.models.web.shown import ShownChars

LONGEST = 2_000
"""Code points of a note."""


class StepNote(models.Model):
    """A plain text that a member of the team left on a step. `author_name` stays when the account
    is deleted; a program has no `author`."""

    session = models.ForeignKey(
        "agent_sessions.Session",
        on_delete=models.CASCADE,
        related_name="step_notes",
        db_index=False,
    )
    step = models.PositiveIntegerField()
    text = ShownChars(max_length=LONGEST)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    author_name = models.CharField(max_length=150)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["session", "step"], name="note_on_step")]

    def __str__(self) -> str:
        return f"note {self.pk} on step {self.step}"
