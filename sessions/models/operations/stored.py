"""How much content each team stores."""

from __future__ import annotations

from django.db import models


class StoredBytes(models.Model):
    """Content of a team as stored, compressed, counted up to the blob with primary key `until`.

    Rows, indexes and the search index come on top.
    """

    team = models.OneToOneField(
        "agent_sessions.Team", on_delete=models.CASCADE, primary_key=True, related_name="stored"
    )
    bytes = models.BigIntegerField(default=0)
    blobs = models.BigIntegerField(default=0)
    until = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.bytes} bytes of {self.team_id}"
