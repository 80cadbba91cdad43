"""Cache breaks of sessions, added up by cause."""

from __future__ import annotations

from django.db import models
from django.db.models import Count, Sum


class BreakTotals(models.Model):
    """The cache breaks of one session with one cause: those that are `avoidable`, or the others.

    `tokens` were paid again; `cost_microusd` is what that cost above reading them, null if the cost
    of the session is unknown.
    """

    session = models.ForeignKey(
        "agent_sessions.Session",
        on_delete=models.CASCADE,
        related_name="break_totals",
        db_index=False,
    )
    cause = models.CharField(max_length=12)
    avoidable = models.BooleanField(default=False)
    breaks = models.PositiveIntegerField()
    tokens = models.PositiveBigIntegerField()
    cost_microusd = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "cause", "avoidable"], name="break_cause_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.cause}: {self.breaks}"


BREAKS = {
    "breaks": Sum("breaks"),
    "tokens": Sum("tokens"),
    "cost": Sum("cost_microusd"),
    "sessions": Count("*"),
    "priced": Count("cost_microusd"),
}
"""Sums of each cause of cache breaks; `priced` is how many of the sessions have a cost."""


def break_sum(cause: str, name: str, *, avoidable: bool) -> str:
    """The name of a cause's sum among the others, of its avoidable breaks or of the rest."""
    return f"break_{cause}_{name}" if avoidable else f"break_{cause}_stays_{name}"
