"""Sessions that an erasure takes: those that its rule names, and sub-agents that came meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from sessions.actions.erasure import receipts
from sessions.actions.erasure.rows import with_sub_agents
from sessions.live import hint
from sessions.models import ErasedSession, Erasure, Session
from sessions.models.erasure.erasures import keyed_name

Kind = Erasure.Kind


def take(erasure: Erasure, ids: Sequence[UUID]) -> int:
    """Mark sessions as being erased, unless they are, in a transaction; return how many."""
    stored = Session.objects.for_team(erasure.team).filter(pk__in=list(ids), erasing=None)
    found = list(stored.select_for_update().only("pk", "external_id", "version", "team_id"))
    ErasedSession.objects.bulk_create(
        ErasedSession(
            erasure=erasure,
            team=erasure.team,
            session=one.pk,
            name="" if erasure.content_only else keyed_name(erasure.team_id, one.external_id),
            named=receipts.hashed(erasure.salt, one.external_id),
        )
        for one in found
    )
    mine = Session.objects.filter(pk__in=[one.pk for one in found])
    mine.update(erasing=timezone.now())
    _touch(found)
    return len(found)


def came_late(erasure: Erasure) -> list[UUID]:
    """Sub-agents of the erased sessions, whose rows are gone, with theirs: what was stored between
    the request and its job, or by a transaction that was open then."""
    if erasure.kind not in receipts.WITH_SUB_AGENTS:
        return []
    names = set(erasure.sessions.exclude(name="").values_list("name", flat=True))
    # As in the condition of its index.
    orphans = Session.objects.for_team(erasure.team).filter(parent=None, parent_external_id__gt="")
    found = [
        pk
        for pk, parent in orphans.values_list("pk", "parent_external_id").iterator()
        if keyed_name(erasure.team_id, parent) in names
    ]
    return with_sub_agents(erasure.team, found)


def _touch(sessions: Iterable[Session]) -> None:
    """Announce sessions that are being erased to open pages."""
    for session in sessions:
        Session.objects.filter(pk=session.pk).update(version=F("version") + 1)
        hint(f"session:{session.pk}", session.version + 1)
        hint(f"sessions:{session.team_id}", session.version + 1)
