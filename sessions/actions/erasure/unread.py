"""Uploads that no job reads any more, because their import failed or was cancelled.

It is unknown whose data is in them, so an erasure takes all of its team.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from sessions.actions.erasure.holds import in_force
from sessions.actions.jobs.jobs import UNFINISHED
from sessions.models import ImportFile, Team
from sessions.models.record import objects


def uploads(team: Team, until: datetime | None = None) -> list[ImportFile]:
    """Uploads of a team that wait for no job, of imports before `until`; none while a hold is in
    force, because it may be on what they hold."""
    if in_force(team):
        return []
    rows = ImportFile.objects.filter(import_run__team=team, state=ImportFile.State.WAITING)
    rows = rows.exclude(import_run__job__state__in=UNFINISHED).exclude(stored="")
    if until is not None:
        rows = rows.filter(import_run__created__lt=until)
    return [one for one in rows if objects.uploaded([one.stored])]


def erase(team: Team, until: datetime | None = None) -> Counter[str]:
    """Delete them with their rows, in the caller's transaction; return their number by name. The
    files go before the receipt is written (`objects.remove_forgotten`)."""
    found = uploads(team, until)
    objects.forget(objects.uploaded(one.stored for one in found))
    ImportFile.objects.filter(pk__in=[one.pk for one in found]).delete()
    return Counter(counted(found))


def counted(found: list[ImportFile]) -> dict[str, int]:
    """Uploads as an erasure counts them."""
    return {"upload": len(found)} if found else {}
