"""Searches that a team keeps under a name."""

from __future__ import annotations

from django.db import models


class SavedSearch(models.Model):
    """A search of the team, as the query string of the search page."""

    team = models.ForeignKey(
        "agent_sessions.Team",
        on_delete=models.CASCADE,
        related_name="saved_searches",
        db_index=False,
    )
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=2_000, help_text="query string of the page")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="search_name_once_per_team")
        ]

    def __str__(self) -> str:
        return self.name
