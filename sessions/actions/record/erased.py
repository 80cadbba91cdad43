"""Deletion of sessions with what only they use."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from sessions.models import Blob, Block, Replacement, Session, Team

CHUNK = 400
"""Hashes per query: below any database's limit on variables."""


def erase(team: Team, sessions: QuerySet[Session]) -> list[str]:
    """Delete sessions with their runs; return the hashes of blobs that they used, for
    `erase_unused`."""
    sessions = sessions.filter(team=team)
    shas = set(Block.objects.filter(session__in=sessions).values_list("sha", flat=True))
    shas |= set(Replacement.objects.filter(run__session__in=sessions).values_list("sha", flat=True))
    sessions.delete()
    return sorted(shas)


def erase_unused(team: Team, shas: Sequence[str]) -> None:
    """Delete blobs that no block or replacement of the team uses."""
    for start in range(0, len(shas), CHUNK):
        chunk = set(shas[start : start + CHUNK])
        kept = Block.objects.filter(session__team=team, sha__in=chunk)
        replaced = Replacement.objects.filter(run__session__team=team, sha__in=chunk)
        chunk -= set(kept.values_list("sha", flat=True))
        chunk -= set(replaced.values_list("sha", flat=True))
        Blob.objects.filter(team=team, sha__in=chunk).delete()
