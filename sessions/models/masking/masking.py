"""A team's own masking rules, whether it masks what comes in, and what was masked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import cast

from django.db import models
from django.db.models import Q

from compaction.redaction.team_rules import RuleKind, TeamRule
from sessions.models.accounts.teams import Team
from sessions.models.web.statements import Statement, given_uuid


class MaskingRule(models.Model):
    """A rule of a team. It never changes: a change removes it and adds another, so that what was
    masked by it can be recognized."""

    class Kind(models.TextChoices):
        WORDS = "words", "Words"
        PATTERN = "pattern", "Pattern"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="masking_rules")
    name = models.CharField(max_length=30)
    kind = models.CharField(max_length=7, choices=Kind.choices)
    text = models.TextField(help_text="a pattern, or words, one a line")
    replacement = models.CharField(max_length=60)
    by = models.CharField(max_length=150)
    added = models.DateTimeField()
    removed = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=Q(removed=None), name="one_rule_of_a_name"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rule(self) -> TeamRule:
        """The rule as the engine applies it."""
        return TeamRule(self.name, cast(RuleKind, self.kind), self.text, self.replacement)


class IncomingMasking(models.Model):
    """A time in which a team masks what comes in, before it is stored; `ended` is null now."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="incoming_masking")
    began = models.DateTimeField()
    ended = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team"], condition=Q(ended=None), name="one_incoming_masking"
            )
        ]

    def __str__(self) -> str:
        return f"masking of {self.team_id}"


class MaskedCount(models.Model):
    """How many places of a session were masked before they were stored, by rule."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="masked_counts"
    )
    name = models.CharField(max_length=30, help_text="a team's rule, or a kind of secret")
    count = models.PositiveBigIntegerField(default=0)
    at = models.DateTimeField(help_text="when it was last masked")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "name"], name="one_masked_count")]
        indexes = [models.Index(fields=["team", "-at"], name="masked_newest")]

    def __str__(self) -> str:
        return f"{self.count} × {self.name}"


_IN_FORCE = Statement(
    lambda: MaskingRule.objects.filter(team_id=given_uuid("team"), removed=None).order_by(
        "added", "pk"
    )
)


def rules_of(team: uuid.UUID) -> Sequence[TeamRule]:
    """The rules of a team that are in force, oldest first: what masks, masks by them, too."""
    return tuple(row.rule for row in _IN_FORCE.rows(team=team))
