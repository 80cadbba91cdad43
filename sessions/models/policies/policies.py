"""Policies as versioned data, and their rollouts to new sessions."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Policy(models.Model):
    """A named policy of a team; its content is in its versions.

    `based_on` names the preset that supplies the values the team did not change.
    """

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="policies"
    )
    name = models.CharField(max_length=80)
    preset = models.BooleanField(default=False, help_text="ships with the product")
    based_on = models.CharField(max_length=80, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="policy_name_once_per_team")
        ]
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class PolicyVersion(models.Model):
    """An immutable version of a policy. `document` is the complete policy, run as stored."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    note = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="policy_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.policy.name}@{self.number}"


class Rollout(models.Model):
    """The rollout of a policy version to new sessions of a team, or its rollback.

    `share` percent of the new sessions that name no policy start with `version`, the others with
    `before` (null: the DEFAULT_POLICY setting). At 100 it is complete and `version` becomes the
    team's active version. Sessions keep the version they started with.
    """

    class State(models.TextChoices):
        PROPOSED = "proposed"
        DECLINED = "declined"
        RUNNING = "running"
        PAUSED = "paused"
        COMPLETE = "complete"
        ROLLED_BACK = "rolled_back", "rolled back"

    UNDER_WAY = (State.RUNNING, State.PAUSED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="rollouts"
    )
    version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="rollouts")
    before = models.ForeignKey(PolicyVersion, null=True, on_delete=models.PROTECT, related_name="+")
    simulation = models.ForeignKey(
        "agent_sessions.Simulation", null=True, on_delete=models.SET_NULL, related_name="rollouts"
    )
    state = models.CharField(max_length=12, choices=State.choices, default=State.PROPOSED)
    share = models.PositiveSmallIntegerField(default=0, help_text="percent of new sessions")
    note = models.CharField(max_length=1000, blank=True)
    guardrail = models.JSONField(
        default=dict, help_text="limits, see actions/policies/guardrails.py"
    )
    found = models.JSONField(default=dict, help_text="latest figures of the guardrail")
    reason = models.CharField(max_length=300, blank=True, help_text="why it paused or ended")
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    began = models.DateTimeField(null=True, help_text="when it was accepted")
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team"],
                condition=models.Q(state__in=["running", "paused"]),
                name="one_rollout_under_way_per_team",
            )
        ]
        indexes = [models.Index(fields=["team", "-created"], name="rollout_newest")]

    def __str__(self) -> str:
        return f"{self.version} to {self.share} %"
