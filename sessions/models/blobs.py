"""Content, addressed by its SHA-256 within a team."""

from __future__ import annotations

import hashlib
import zlib
from uuid import UUID

from django.db import models

COMPRESS_FROM = 200
"""Bytes from which zlib earns its header."""


class DamagedBlob(Exception):
    """Stored bytes no longer match their SHA-256."""


def sha256(data: bytes) -> str:
    """The address of some bytes: 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def pack(data: bytes) -> tuple[bytes, bool]:
    """Bytes as they are stored, and whether that is compressed."""
    packed = len(data) >= COMPRESS_FROM
    return (zlib.compress(data, 1) if packed else data), packed


class Blob(models.Model):
    """Bytes as they were accepted; never updated, deleted by erasure only."""

    team = models.ForeignKey("agent_sessions.Team", on_delete=models.CASCADE, related_name="blobs")
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
        """An unsaved blob of these bytes."""
        stored, packed = pack(data)
        return cls(
            team_id=team_id, sha=sha or sha256(data), size=len(data), packed=packed, data=stored
        )

    def content(self) -> bytes:
        """The bytes as accepted. Raises DamagedBlob when they no longer match their address."""
        stored = bytes(self.data)
        try:
            data = zlib.decompress(stored) if self.packed else stored
        except zlib.error as error:
            raise DamagedBlob(f"blob {self.sha} does not unpack: {error}") from error
        if sha256(data) != self.sha:
            raise DamagedBlob(f"blob {self.sha} holds other bytes than it was stored with")
        return data
