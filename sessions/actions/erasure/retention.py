"""Retention: what a team no longer keeps is erased after a change, and every day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from sessions.actions.accounts import audit
from sessions.actions.erasure import unread
from sessions.actions.erasure.age import at_work, ids, older_than
from sessions.actions.erasure.holds import held
from sessions.actions.erasure.requests import ErasureRule, begin
from sessions.actions.erasure.rows import text_bytes
from sessions.models import AuditEntry, Erasure, Retention, Team

EVERY = timedelta(days=1)
SESSIONS = 1_000
"""Sessions per erasure: each has its own receipt and job."""

RULE = audit.Actor(AuditEntry.Via.RULE, "retention")


@dataclass(frozen=True, slots=True)
class Due:
    """What retention erases: sessions whose content goes, sessions that go, bytes of their
    messages, how many more a hold keeps, and which of them are still at work, so go later."""

    content: list[UUID]
    sessions: list[UUID]
    bytes: int
    held: int
    at_work: frozenset[UUID]


def due(team: Team, content_days: int | None, session_days: int | None, now: datetime) -> Due:
    """What is older than so many days: a dry run. The demo stays."""
    gone = _older(team, session_days, now)
    content = _older(team, content_days, now, Q(content_erased=None))
    content = {pk: working for pk, working in content.items() if pk not in gone}
    kept = held(team, [*gone, *content])
    free = {pk: working for pk, working in (gone | content).items() if pk not in kept}
    return Due(
        content=[pk for pk in content if pk in free],
        sessions=[pk for pk in gone if pk in free],
        bytes=text_bytes(list(free)),
        held=len(kept),
        at_work=frozenset(pk for pk, working in free.items() if working),
    )


def _older(team: Team, days: int | None, now: datetime, also: Q | None = None) -> dict[UUID, bool]:
    """The ids of sessions older than so many days, each with whether it is still at work."""
    if days is None:
        return {}
    rows = older_than(team, days, now).filter(also or Q())
    working = set(ids(rows.filter(at_work(now))))
    return {pk: pk in working for pk in ids(rows)}


def _parts(found: Sequence[UUID], size: int) -> list[Sequence[UUID]]:
    return [found[start : start + size] for start in range(0, len(found), size)]


def change(
    team: Team, content_days: int | None, session_days: int | None, actor: audit.Actor
) -> Retention:
    """Set for how long a team keeps content and sessions; the next sweep begins with it."""
    with transaction.atomic():
        row, _ = Retention.objects.get_or_create(team=team)
        before = {"content_days": row.content_days, "session_days": row.session_days}
        row.content_days, row.session_days, row.looked = content_days, session_days, None
        row.save()
        now = {"content_days": content_days, "session_days": session_days}
        audit.note(team, actor, "retention.changed", team.slug, before=before, now=now)
    return row


def sweep(now: datetime) -> int:
    """Begin the erasures of teams that were not looked at for a day; return how many."""
    waiting = Q(looked=None) | Q(looked__lt=now - EVERY)
    limited = Q(content_days__isnull=False) | Q(session_days__isnull=False)
    begun = 0
    for row in Retention.objects.filter(waiting, limited).select_related("team"):
        mine = Retention.objects.filter(waiting, pk=row.pk)
        if mine.update(looked=now):  # of several servers, one
            begun += len(keep_no_longer(row, now))
    return begun


def keep_no_longer(row: Retention, now: datetime) -> list[Erasure]:
    """Begin the erasure of what a team no longer keeps."""
    found = due(row.team, row.content_days, row.session_days, now)
    made = []
    for content_only, older, days in (
        (True, found.content, row.content_days),
        (False, found.sessions, row.session_days),
    ):
        if days is None:
            continue
        rule = ErasureRule(Erasure.Kind.RETENTION, content_only=content_only)
        until = now - timedelta(days=days)
        parts = _parts([pk for pk in older if pk not in found.at_work], SESSIONS)
        if not parts and unread.uploads(row.team, until):
            parts = [[]]
        for part in parts:
            made.append(begin(row.team, rule, part, RULE, f"older than {days} days", until))
    return made
