"""Lookup of teams and sessions named on the command line."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db.models import Q

from sessions.actions.accounts.teams import team_named
from sessions.actions.archives.unpack import open_all
from sessions.models import Session, Team


def find_team(slug: str | None) -> Team:
    """The team with that slug, or the local team. Raises CommandError."""
    team = team_named(slug)
    if team is None:
        raise CommandError(f"There is no team {slug!r}.", returncode=2)
    return team


SESSION_HELP = "external id or UUID, or the beginning of one"
SHORTEST = 4
"""Characters of an id that are enough, if no other session's id begins with them."""
MOST_NAMED = 5


def find_session(name: str, team: str | None) -> Session:
    """A team's session by external id or UUID, or the beginning of one. Raises CommandError."""
    its = find_team(team)
    found = Session.objects.named_in(its, name)
    if found is None:
        found = _beginning(its, name)
    if found is None:
        raise CommandError(
            f"There is no session {name!r} in this team. `contextlab show` lists the newest.",
            returncode=2,
        )
    open_all([found])
    return found


def _beginning(team: Team, name: str) -> Session | None:
    """The only session whose id begins so; sub-agents, whose ids begin like their parent's, count
    only if no other does."""
    start, _, end = name.partition("…")  # the session list shows long ids as “019f03e0…cd71be23”
    if len(start) < SHORTEST or "\x00" in name:
        return None
    of_team = Session.objects.for_team(team).select_related("policy_version__policy")
    named = Q(external_id__startswith=start, external_id__endswith=end)
    begun = of_team.filter(named if end else named | Q(id__startswith=start))
    found = list(begun.order_by("external_id")[: MOST_NAMED + 1])
    if len(found) > 1 and found[1].external_id.startswith(f"{found[0].external_id}/"):
        others = begun.exclude(external_id__startswith=f"{found[0].external_id}/")
        found = list(others.order_by("external_id")[: MOST_NAMED + 1])
    if len(found) > 1:
        ids = ", ".join(one.external_id for one in found[:MOST_NAMED])
        more = " and more" if len(found) > MOST_NAMED else ""
        raise CommandError(f"Several sessions begin with {name!r}: {ids}{more}.", returncode=2)
    return found[0] if found else None
