"""The audit log: who did what in a team, written in the transaction of the action."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from sessions.actions.accounts.chain import hash_of, line_of
from sessions.models import AuditEntry, Key, Team


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of an audited action: a person, a program with a key, a command, or a rule of
    ours."""

    via: AuditEntry.Via
    name: str
    user: User | None = None
    ip: str = ""


COMMAND = Actor(AuditEntry.Via.COMMAND, "command line")
GUARDRAIL = Actor(AuditEntry.Via.RULE, "guardrail")
POLICY = Actor(AuditEntry.Via.RULE, "policy")
DEMO = Actor(AuditEntry.Via.RULE, "demo")
"""What loading the demo makes besides sessions."""
REFUSED_EVERY = timedelta(minutes=10)
MOST_REFUSED = 100


def stranger(ip: str = "") -> Actor:
    """The actor of a sign-in that failed. No user name has a space."""
    return Actor(AuditEntry.Via.PERSON, "not signed in", ip=ip)


def person(user: User, ip: str = "") -> Actor:
    """The actor for a signed-in user, by the name that is unique."""
    return Actor(AuditEntry.Via.PERSON, user.username, user, ip)


def program(key: Key, ip: str = "") -> Actor:
    """The actor for a program, named after its key."""
    return Actor(AuditEntry.Via.KEY, key.name or f"clk_{key.prefix}", ip=ip)


def note(
    team: Team, actor: Actor, action: str, named: str | User = "", **detail: Any
) -> AuditEntry:
    """Add an entry to the audit log. `action` is "<concept>.<past participle>"; details are names
    and numbers, never content.

    Entries of a team are written one after the other: the next transaction that adds one waits
    until this one ends.
    """
    whom = named if isinstance(named, User) else None
    row = AuditEntry(
        team=team,
        at=timezone.now(),
        via=actor.via,
        actor=actor.name[:150],
        actor_id=actor.user.pk if actor.user else None,
        ip=actor.ip,
        action=action,
        named=str(whom.get_username() if whom else named)[:200],
        named_id=whom.pk if whom else None,
        detail=json.loads(json.dumps(detail)),
    )
    row.actor_salt, row.named_salt, row.detail_salt = (secrets.token_hex(16) for _ in range(3))
    with transaction.atomic():
        # Without `no_key`, sessions of the team could not be added meanwhile.
        Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values("pk").first()
        entries = AuditEntry.objects.filter(team=team).order_by("-number")
        last = entries.values_list("number", "hash").first()
        row.number, row.previous = (last[0] + 1, last[1]) if last else (1, "")
        row.hash = hash_of(line_of(row))
        row.save(force_insert=True)
    return row


def note_for(user: User, actor: Actor, action: str, named: str | User = "", **detail: Any) -> None:
    """Add an entry to the log of each team of a user."""
    with transaction.atomic():
        for team in Team.objects.filter(memberships__user=user).order_by("pk"):
            note(team, actor, action, named, **detail)


def note_refusal(team: Team, actor: Actor, named: str, **detail: Any) -> None:
    """Add an entry for something that was refused: for an actor, one per object in REFUSED_EVERY,
    because programs try again, and MOST_REFUSED in all."""
    since = timezone.now() - REFUSED_EVERY
    known = AuditEntry.objects.filter(team=team, at__gte=since, action="access.refused")
    known = known.filter(via=actor.via, actor=actor.name[:150])
    objects = list(known.values_list("named", flat=True)[:MOST_REFUSED])
    if named[:200] not in objects and len(objects) < MOST_REFUSED:
        note(team, actor, "access.refused", named, **detail)
