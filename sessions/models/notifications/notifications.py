"""Where a team is notified, of what, and the delivery log."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from sessions.models.accounts.teams import Team


class NotificationChannel(models.Model):
    """A destination of notifications: a webhook, a Slack-compatible webhook, or email addresses.

    `address` and `secret` (of a webhook's signature) are encrypted with the server's secret key;
    `shown` is the address as pages and API show it, without the part that grants access.
    """

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", "Webhook"
        SLACK = "slack", "Slack-compatible webhook"
        EMAIL = "email", "Email"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="channels")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    name = models.CharField(max_length=100)
    address = models.BinaryField()
    secret = models.BinaryField(default=b"")
    shown = models.CharField(max_length=300)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="one_channel_per_name")
        ]

    def __str__(self) -> str:
        return self.name


class NotificationRule(models.Model):
    """Which event goes to which channel.

    `threshold` is in the unit of the event (micro-dollars, percent, facts); null if it has none.
    Of the same cause, at most one notification is sent in `quiet_minutes`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    event = models.CharField(max_length=20)
    channel = models.ForeignKey(NotificationChannel, on_delete=models.CASCADE, related_name="rules")
    threshold = models.BigIntegerField(null=True)
    quiet_minutes = models.PositiveIntegerField(default=60)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "event"], name="one_rule_per_event")
        ]
        indexes = [models.Index(fields=["team", "event"], name="notification_rules_of")]

    def __str__(self) -> str:
        return f"{self.event} to {self.channel}"


class Notification(models.Model):
    """One event for one channel, and how its delivery went.

    `occurrence` identifies what happened, so that each channel gets it once; `cause` is what the
    quiet time of a rule compares. `facts` are names and numbers, never content; `path` is the page
    that shows more.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"
        QUIET = "quiet"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="notifications")
    channel = models.ForeignKey(
        NotificationChannel, on_delete=models.CASCADE, related_name="notifications"
    )
    event = models.CharField(max_length=20)
    occurrence = models.CharField(max_length=200)
    cause = models.CharField(max_length=200)
    title = models.CharField(max_length=500)
    facts = models.JSONField(default=dict)
    path = models.CharField(max_length=300)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status of the last answer")
    took_ms = models.PositiveIntegerField(null=True)
    problem = models.CharField(max_length=300, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    sent = models.DateTimeField(null=True)
    next_attempt = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "occurrence"], name="one_notification_per_occurrence"
            )
        ]
        indexes = [
            models.Index(fields=["team", "-created"], name="notification_newest"),
            models.Index(
                fields=["channel", "event", "cause", "-created"], name="notification_of_cause"
            ),
        ]

    def __str__(self) -> str:
        return self.title
