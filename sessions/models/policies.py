"""Policies as versioned data."""

from __future__ import annotations

from django.db import models


class Policy(models.Model):
    """A named policy of a team; what it says is in its versions."""

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="policies"
    )
    name = models.CharField(max_length=80)
    preset = models.BooleanField(default=False, help_text="ships with the product")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="policy_name_once_per_team")
        ]
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class PolicyVersion(models.Model):
    """What a policy said at one time; never changed. `document` is run as it is."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    note = models.CharField(max_length=300, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="policy_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.policy.name}@{self.number}"
