"""Count what teams store: new blobs are added up every minute, erased ones taken off."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Max, Sum
from django.db.models.functions import Length

from sessions.actions.accounts.teams import LOCAL_TEAM
from sessions.models import Blob, StoredBytes, Team

BLOBS_AT_ONCE = 50_000
"""Blobs that one pass counts at most."""

SIZE = Length("data") + F("object_bytes")
"""Bytes of a blob as stored, in its row or in its object."""

_settled = 0
"""Newest blob at the last pass of this process. Younger ones may not all be visible yet: a
transaction that began earlier may commit later."""


def count_new() -> None:
    """Add the blobs since the last count, of all teams."""
    global _settled
    newest = Blob.objects.aggregate(newest=Max("pk"))["newest"] or 0
    limit, _settled = _settled, newest
    if limit <= _counted():
        return
    with transaction.atomic():
        # One process at a time; inserts that refer to the team do not wait for it.
        list(Team.objects.select_for_update(no_key=True).filter(slug=LOCAL_TEAM).values("pk"))
        fresh = Blob.objects.filter(pk__gt=_counted(), pk__lte=limit)
        last = fresh.order_by("pk").values_list("pk", flat=True)[BLOBS_AT_ONCE - 1 : BLOBS_AT_ONCE]
        rows = fresh.filter(pk__lte=next(iter(last), limit)).values("team")
        for row in rows.annotate(size=Sum(SIZE), blobs=Count("pk"), last=Max("pk")):
            kept, _ = StoredBytes.objects.get_or_create(team_id=row["team"])
            more = {"bytes": F("bytes") + row["size"], "blobs": F("blobs") + row["blobs"]}
            StoredBytes.objects.filter(pk=kept.pk).update(until=row["last"], **more)


def _counted() -> int:
    return StoredBytes.objects.aggregate(until=Max("until"))["until"] or 0


def take_off(team: UUID, shas: Iterable[str]) -> None:
    """Subtract blobs that are about to be deleted, in their transaction."""
    gone = Blob.objects.filter(team=team, sha__in=shas, pk__lte=_counted())
    sums = gone.aggregate(size=Sum(SIZE), blobs=Count("pk"))
    StoredBytes.objects.filter(team=team).update(
        bytes=F("bytes") - (sums["size"] or 0), blobs=F("blobs") - sums["blobs"]
    )
