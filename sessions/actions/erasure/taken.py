"""Which sessions an erasure takes: those that it is asked for, and those below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from sessions.actions.erasure import receipts
from sessions.actions.erasure.holds import held
from sessions.actions.record.erased import CHUNK, wait_for_sub_agents
from sessions.live import hint
from sessions.models import ErasedSession, Erasure, Session
from sessions.models.erasure.erasures import keyed_name

_COLUMNS = ("pk", "external_id", "version", "team_id")


def take(erasure: Erasure, ids: Sequence[UUID]) -> int:
    """Mark sessions as being erased, unless they are; return how many were not."""
    stored = Session.objects.for_team(erasure.team).filter(pk__in=list(ids), erasing=None)
    found = list(stored.select_for_update().order_by("pk").only(*_COLUMNS))
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


def _touch(sessions: Iterable[Session]) -> None:
    """Announce sessions that are being erased to open pages."""
    for session in sessions:
        Session.objects.filter(pk=session.pk).update(version=F("version") + 1)
        hint(f"session:{session.pk}", session.version + 1)
        hint(f"sessions:{session.team_id}", session.version + 1)


def take_below(erasure: Erasure) -> None:
    """Take the sub-agents of an erasure's sessions that were stored while it was asked for; once
    those are stored that are on their way, no more come. What is on hold stays."""
    if erasure.kind not in receipts.WITH_SUB_AGENTS:
        return
    wait_for_sub_agents(erasure.team)
    known: set[str] = set()
    names = set(erasure.sessions.values_list("named", flat=True))
    while names:
        found = receipts.sub_agents(erasure.team, erasure.salt, names)
        kept = held(erasure.team, found) if found else {}
        free = sorted(pk for pk in found if pk not in kept)
        for start in range(0, len(free), CHUNK):
            with transaction.atomic():
                take(erasure, free[start : start + CHUNK])
        known |= names
        names = set(erasure.sessions.values_list("named", flat=True)) - known
