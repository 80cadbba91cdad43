"""Lookup of teams and sessions named on the command line."""

from __future__ import annotations

from django.core.management.base import CommandError

from sessions.actions.accounts.teams import team_named
from sessions.models import Session, Team


def find_team(slug: str | None) -> Team:
    """The team with that slug, or the local team. Raises CommandError."""
    team = team_named(slug)
    if team is None:
        raise CommandError(f"There is no team {slug!r}.", returncode=2)
    return team


def find_session(name: str, team: str | None) -> Session:
    """A team's session by external id or UUID. Raises CommandError."""
    found = Session.objects.named_in(find_team(team), name)
    if found is None:
        raise CommandError(
            f"There is no session {name!r} in this team. Find its id in the session list of "
            "the dashboard.",
            returncode=2,
        )
    return found
