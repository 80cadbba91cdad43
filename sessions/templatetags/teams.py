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

SETTINGS: dict[str, tuple[str, Right | None]] = {
    "keys": ("Keys", None),
    "members": ("Members", None),
    "team": ("Team", None),
    "notifications": ("Notifications", None),
    "ingestion": ("Ingestion", None),
    "masking": ("Masking", "erase"),
    "data": ("Data", "erase"),
    "audit": ("Audit log", "audit"),
}
"""The pages of a team's settings by name: title, and the right to see them."""
SERVER = "Server"


@register.filter
def settings_title(name: str) -> str:
    """The title of a page of the settings."""
    return SETTINGS[name][0] if name in SETTINGS else SERVER


@register.simple_tag(takes_context=True)
def settings_pages(context: Context, team: Any) -> list[tuple[str, str]]:
    """The settings that the user may see: names and titles, with the server's for its operators."""
    shown = [
        (name, title)
        for name, (title, right) in SETTINGS.items()
        if right is None or allowed(context, team, right)
    ]
    return [*shown, ("status", SERVER)] if operates(context) else shown


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
