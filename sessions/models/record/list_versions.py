"""The version of a team's list of sessions: changes with every session and every change, also with
its assessment, which follows later."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from uuid import UUID

from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_uuid

NEWEST = 64
"""Sessions compared. Transactions may commit in another order than their sessions changed in, but
not with so many in between."""

_BITS = 48  # a browser's numbers are exact up to 53


def list_version(team: UUID) -> int:
    """The version of one team's list: other sessions, or other versions of the newest, make another
    number. Reads an index, and no row that every append would have to lock."""
    seen = _SEEN.rows(team=team)
    digest = blake2b(repr(seen).encode(), digest_size=_BITS // 8).digest()
    return int.from_bytes(digest) if seen else 0


_SEEN = Statement(
    lambda: (
        Session.objects.filter(team_id=given_uuid("team"))
        .order_by("-changed")
        .values_list("id", "version", "changed", "assessment__steps", "assessment__engine")[:NEWEST]
    )
)


def together(versions: Iterable[int]) -> int:
    """The version of the lists of several teams."""
    return sum(versions) % 2**_BITS
