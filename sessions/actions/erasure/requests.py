"""Requests to erase: what a rule names, what that would delete, and the job that does it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from sessions.actions.accounts import audit
from sessions.actions.accounts.members import keep_an_owner
from sessions.actions.erasure import erase, people, receipts, rows, taken, unread
from sessions.actions.erasure.holds import Held, refuse_held
from sessions.actions.jobs import jobs
from sessions.actions.record.erased import CHUNK
from sessions.models import Erasure, Membership, Session, Team

Kind = Erasure.Kind
FIRST = 20
"""Sessions that a dry run names."""


class NothingToErase(ValueError):
    """The rule names nothing that is stored."""


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """What to erase: a kind, and the value that names it (an id, a task, KEY=VALUE, a text)."""

    kind: Erasure.Kind
    value: str = ""
    content_only: bool = False

    def stored(self, salt: str) -> dict[str, str]:
        """The rule as a receipt shows it."""
        return {"value": receipts.hashed(salt, self.value)} if self.value else {}


@dataclass(frozen=True, slots=True)
class Scope:
    """What an erasure would delete: sessions with their sub-agents, rows by table, and bytes of
    messages, before compression. `shared` were delivered to sessions that stay; `held` is the
    hold that forbids it, "" without one. `first` are ids of sessions with their external ids."""

    rule: ErasureRule
    sessions: list[UUID]
    rows: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    shared: int = 0
    held: str = ""
    first: dict[UUID, str] = field(default_factory=dict)

    @property
    def more(self) -> int:
        """How many sessions are not among the first."""
        return len(self.sessions) - len(self.first)


def scope_of(team: Team, rule: ErasureRule, sessions: Sequence[UUID]) -> Scope:
    """Count what an erasure of these sessions would delete: a dry run."""
    counted = rows.counted(list(sessions))
    if rule.kind not in (Kind.MEMBER, Kind.TEAM):
        counted |= unread.counted(unread.uploads(team))
    shared = 0
    for start in range(0, len(sessions), CHUNK):
        some = sessions[start : start + CHUNK]
        shared += rows.delivered_outside(some)
    held = ""
    try:
        refuse_held(team, sessions, whole_team=rule.kind == Kind.TEAM)
    except Held as refusal:
        held = str(refusal)
    named = Session.objects.for_team(team).filter(pk__in=list(sessions[:FIRST]))
    first = dict(named.order_by("external_id").values_list("pk", "external_id"))
    size = rows.text_bytes(list(sessions))
    return Scope(rule, list(sessions), counted, size, shared, held, first)


def begin(
    team: Team,
    rule: ErasureRule,
    sessions: Sequence[UUID],
    actor: audit.Actor,
    reason: str = "",
    until: datetime | None = None,
) -> Erasure:
    """Begin an erasure: from the commit on, its sessions take nothing more, and a job deletes them.
    `until`: only uploads that came before go with them.

    Raises NothingToErase, Held, LastOwner.
    """
    salt = secrets.token_hex(16)
    with transaction.atomic():
        refuse_held(team, sessions, whole_team=rule.kind == Kind.TEAM)
        counts = people.delete_all(_beside(team, rule))
        if rule.kind not in (Kind.MEMBER, Kind.TEAM):
            counts += unread.erase(team, until)
        erasure = Erasure.objects.create(
            team=team,
            kind=rule.kind,
            rule=rule.stored(salt),
            content_only=rule.content_only,
            via=actor.via,
            by=actor.name[:150],
            reason=reason[:300],
            salt=salt,
            member=_person(team, rule, actor),
            counts=dict(counts),
        )
        many = sum(taken.take(erasure, part) for part in _parts(sessions))
        if not many and not erasure.counts and rule.kind not in (Kind.MEMBER, Kind.TEAM):
            raise NothingToErase("Nothing is stored under this name, so nothing was erased.")
        erasure.job = jobs.enqueue(team, erase.KIND, {"erasure": str(erasure.pk)})
        erasure.save(update_fields=["job"])
        detail: dict[str, Any] = {"kind": rule.kind, "sessions": many, "reason": erasure.reason}
        audit.note(team, actor, "erasure.asked", str(erasure.pk), **detail)
    return erasure


def _beside(team: Team, rule: ErasureRule) -> Iterator[QuerySet[Any]]:
    """What goes at once, because only the rule as it was given names it."""
    if rule.kind == Kind.TASK:
        yield from people.task_rows(team, rule.value)
    elif rule.kind == Kind.TEXT:
        yield from people.text_rows(team, rule.value)


def _person(team: Team, rule: ErasureRule, actor: audit.Actor) -> int | None:
    """The member whose data is erased; of a team, who asked for it, and stays."""
    if rule.kind == Kind.TEAM:
        return actor.user.pk if actor.user else None
    if rule.kind != Kind.MEMBER:
        return None
    rows = Membership.objects.filter(team=team).select_related("user")
    member = rows.get(user__username=rule.value)
    keep_an_owner(member)
    return member.user_id


def _parts(sessions: Sequence[UUID]) -> Iterable[Sequence[UUID]]:
    return (sessions[start : start + CHUNK] for start in range(0, len(sessions), CHUNK))
