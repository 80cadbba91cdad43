"""Content, addressed by its SHA-256 within a team."""

from __future__ import annotations

import hashlib
import zlib
from uuid import UUID

from django.db import models

COMPRESS_FROM = 200
"""Size in bytes from which compression pays off."""


class DamagedBlob(Exception):
    """Stored bytes no longer match their SHA-256."""


def sha256(data: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def stored_form(data: bytes) -> tuple[bytes, bool]:
    """Bytes as they are stored, and whether that is compressed."""
    if len(data) < COMPRESS_FROM:
        return data, False
    # zlib clears its window first: a small one makes a kilobyte cost a sixth.
    window = min(len(data).bit_length() + 1, zlib.MAX_WBITS)
    return zlib.compress(data, 1, window), True


class Blob(models.Model):
    """Bytes as received; never updated, deleted only by erasure."""

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="blobs", db_index=False
    )
    sha = models.CharField(max_length=64)
    size = models.PositiveIntegerField(help_text="bytes before compression")
    packed = models.BooleanField(default=False)
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "sha"], name="blob_once_per_team")]

    def __str__(self) -> str:
        return self.sha

    @classmethod
    def of(cls, team_id: UUID, data: bytes, sha: str | None = None) -> Blob:
        """Build an unsaved blob of these bytes."""
        stored, packed = stored_form(data)
        return cls(
            team_id=team_id, sha=sha or sha256(data), size=len(data), packed=packed, data=stored
        )
