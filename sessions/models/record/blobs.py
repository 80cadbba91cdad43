"""Content, addressed by its SHA-256 within a team."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from django.db import models

from sessions.models.record import objects
from sessions.models.web.statements import StatementAmong, given_uuid, insert, stored_uuid

OBJECT_FROM = 4096
"""Size in bytes, compressed, from which content is an object where object storage is set: smaller
content would cost a request of its own, and is 98% of the rows."""

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
    """Bytes as received; never updated, deleted only by erasure.

    They are in `data`, or in the object of that name, in the same form.
    """

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="blobs", db_index=False
    )
    sha = models.CharField(max_length=64)
    size = models.PositiveIntegerField(help_text="bytes before compression")
    packed = models.BooleanField(default=False)
    data = models.BinaryField()
    object_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    object_bytes = models.PositiveIntegerField(default=0, db_default=0)

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


class StoredForm(Protocol):
    """Content as it is stored: `data`, compressed if `packed`; `size` is the size before."""

    @property
    def sha(self) -> str:
        """Of the bytes before compression."""

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def packed(self) -> bool:
        """Whether it is compressed."""

    @property
    def data(self) -> bytes | memoryview:
        """The bytes."""


_COLUMNS = ("team_id", "sha", "size", "packed", "data", "object_name", "object_bytes")
_KNOWN = StatementAmong(
    lambda shas: Blob.objects.filter(team_id=given_uuid("team"), sha__in=shas).values_list("sha")
)


def keep(team_id: UUID, contents: Iterable[StoredForm]) -> None:
    """Store content that the team does not have yet, in the caller's transaction; large content
    is in object storage before its row is written. Raises ObjectsAway."""
    by_sha = {one.sha: one for one in contents}
    placed = _placed(team_id, by_sha)
    team = stored_uuid(team_id)
    rows = [
        (team, one.sha, one.size, one.packed, b"", placed[one.sha], len(one.data))
        if one.sha in placed
        else (team, one.sha, one.size, one.packed, one.data, "", 0)
        for one in by_sha.values()
    ]
    insert(Blob, _COLUMNS, rows, known=True)


def _placed(team_id: UUID, by_sha: dict[str, StoredForm]) -> dict[str, str]:
    """Put new large content into object storage; the names of the objects by hash."""
    if not objects.is_shared():
        return {}
    large = [one.sha for one in by_sha.values() if len(one.data) >= OBJECT_FROM]
    known = {sha for (sha,) in _KNOWN.rows(large, team=team_id)} if large else set()
    names = {sha: objects.blob_name(team_id, sha) for sha in large if sha not in known}
    objects.put({name: bytes(by_sha[sha].data) for sha, name in names.items()})
    return names
