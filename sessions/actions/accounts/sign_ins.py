"""Sign-ins in the audit log: of each team that the person is in."""

from __future__ import annotations

from django.contrib.auth.models import User

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import LOCAL_TEAM
from sessions.models import Team


def note_sign_in(user: User, ip: str, how: str) -> None:
    """Note that a person signed in, and how: "password", "printed address"."""
    audit.note_for(user, audit.person(user, ip), "login.used", how)


def note_failure(user: User | None, ip: str, how: str) -> None:
    """Note a sign-in that failed. Without an account that was meant, the local team's log has it,
    and never what was typed: people type passwords into the field for names."""
    if user is not None:
        audit.note_for(user, audit.stranger(ip), "login.failed", user, how=how)
    elif (team := Team.objects.filter(slug=LOCAL_TEAM).first()) is not None:
        audit.note(team, audit.stranger(ip), "login.failed", "unknown name", how=how)
