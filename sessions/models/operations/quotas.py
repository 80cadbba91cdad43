"""What teams may use at most, and what they used."""

from __future__ import annotations

from django.db import models


class Quota(models.Model):
    """Limits of a team that the operator sets; null is none."""

    team = models.OneToOneField(
        "agent_sessions.Team", on_delete=models.CASCADE, primary_key=True, related_name="quota"
    )
    storage_bytes = models.BigIntegerField(null=True, help_text="content as stored")
    requests_minute = models.BigIntegerField(null=True, help_text="API requests with a key")
    requests_day = models.BigIntegerField(null=True, help_text="API requests with a key")
    tokens_month = models.BigIntegerField(
        null=True, help_text="tokens of model calls that agents report"
    )

    def __str__(self) -> str:
        return f"quota of {self.team_id}"


class QuotaUse(models.Model):
    """Requests and tokens of a team with a quota in a minute, a day or a month (UTC)."""

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    period = models.CharField(max_length=6)
    start = models.DateTimeField()
    requests = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "period", "start"], name="one_use_per_period")
        ]

    def __str__(self) -> str:
        return f"{self.period} of {self.team_id}"
