"""When people look at a team's pages."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions.models.accounts.teams import Team


class Visit(models.Model):
    """The visits of one person to the pages of one team.

    `latest` is when they last opened one, `previous` the end of the visit before this one; null at
    the first.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    latest = models.DateTimeField()
    previous = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "team"), name="one_visit_per_person"),
        )

    def __str__(self) -> str:
        return f"visit of {self.user_id} to {self.team_id}"
