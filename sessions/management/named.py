"""What people name on the command line: teams and sessions."""

from __future__ import annotations

from django.core.management.base import CommandError

from sessions.actions.teams import team_named
from sessions.models import Session, Team


def find_team(slug: str | None) -> Team:
    """The team of that slug, the local one where none is given. Raises CommandError."""
    team = team_named(slug)
    if team is None:
        raise CommandError(f"There is no team {slug!r}.", returncode=2)
    return team


def find_session(name: str, team: str | None) -> Session:
    """A team's session by its external id or UUID. Raises CommandError."""
    found = Session.objects.for_team(find_team(team)).named(name)
    if found is None:
        raise CommandError(
            f"There is no session {name!r} in this team; the list on the dashboard has their ids.",
            returncode=2,
        )
    return found
