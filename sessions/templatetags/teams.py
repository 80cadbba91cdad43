"""The teams of the current user."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse

from sessions.access import CHOSEN_TEAM, teams_of
from sessions.access import allowed as is_allowed
from sessions.access import operates as is_operator
from sessions.models import Team
from sessions.models.accounts.teams import Right

register = template.Library()


@register.simple_tag(takes_context=True)
def teams_to_choose(context: Context) -> list[dict[str, str]]:
    """The user's other teams, with URLs to switch to them.

    Pages without parameters are shown again for the other team; otherwise its sessions are.
    """
    request = context.get("request")
    shown = context.get("team") or getattr(context.get("session"), "team", None)
    if request is None or not getattr(request, "user", None) or not isinstance(shown, Team):
        return []
    match = request.resolver_match
    stays = match is not None and not match.kwargs and request.method == "GET"
    place = request.path if stays else reverse("sessions")
    return [
        {"name": team.name, "url": f"{place}?{CHOSEN_TEAM}={team.slug}"}
        for team in sorted(teams_of(request), key=lambda team: team.name.casefold())
        if team.pk != shown.pk
    ]


@register.simple_tag(takes_context=True)
def own_teams(context: Context) -> list[Team]:
    """The user's teams; empty if not signed in."""
    request = context.get("request")
    return teams_of(request) if request is not None and hasattr(request, "user") else []


@register.simple_tag(takes_context=True)
def allowed(context: Context, team: Any, right: Right) -> bool:
    """Whether the user has a right in the team. The server checks again."""
    request = context.get("request")
    return request is not None and isinstance(team, Team) and is_allowed(request, team, right)


@register.simple_tag(takes_context=True)
def operates(context: Context) -> bool:
    """Whether the user runs this server. The server checks again."""
    request = context.get("request")
    return request is not None and hasattr(request, "user") and is_operator(request)
