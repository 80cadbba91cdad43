"""The teams whose pages a person may look at."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from sessions.api.access import CHOSEN_TEAM, teams_of

register = template.Library()


@register.simple_tag(takes_context=True)
def teams_to_choose(context: Context, shown: Any) -> list[dict[str, str]]:
    """The person's other teams by name, with what an address says to choose one."""
    request = context.get("request")
    if request is None or not getattr(request, "user", None) or not shown:
        return []
    return [
        {"name": team.slug, "query": f"?{CHOSEN_TEAM}={team.slug}"}
        for team in sorted(teams_of(request), key=lambda team: team.slug)
        if team.slug != str(shown)
    ]
