"""The audit log: who did what in a team, written in the transaction of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

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


def person(user: User, ip: str = "") -> Actor:
    """The actor for a signed-in user, named as on pages."""
    return Actor(AuditEntry.Via.PERSON, user.get_full_name() or user.username, user, ip)


def program(key: Key, ip: str = "") -> Actor:
    """The actor for a program, named after its key."""
    return Actor(AuditEntry.Via.KEY, key.name or f"clk_{key.prefix}", ip=ip)


def note(team: Team, actor: Actor, action: str, named: str = "", **detail: Any) -> AuditEntry:
    """Add an entry to the audit log. `action` is "<concept>.<past participle>"; details are names
    and numbers, never content."""
    return AuditEntry.objects.create(
        team=team,
        via=actor.via,
        actor=actor.name[:150],
        actor_id=actor.user.pk if actor.user else None,
        ip=actor.ip,
        action=action,
        named=named[:200],
        detail=detail,
    )
