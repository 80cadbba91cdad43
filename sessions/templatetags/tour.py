"""The card of the guided tour."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from sessions.access import team_of
from sessions.actions.accounts.preferences import preferred
from sessions.actions.demo.tour_stops import PLACE, STOPS
from sessions.models.record.demo_data import demo_data

register = template.Library()


@register.inclusion_tag("demo/tour.html", takes_context=True)
def tour_card(context: Context) -> dict[str, Any]:
    """The current stop, if the tour is under way and this is its page."""
    request = context.get("request")
    if request is None or getattr(request, "session", {}).get(PLACE) != request.path:
        return {}
    at: int = preferred(request).get("tour") or 0
    demo = demo_data(team_of(request)) if at in range(1, len(STOPS) + 1) else None
    if demo is None:
        return {}
    stop = STOPS[at - 1]
    return {
        "title": stop.title,
        "text": stop.text if demo.alone or not stop.beside else stop.beside,
        "here": request.get_full_path(),
        "number": at,
        "of": len(STOPS),
        "before": at - 1,
        "after": at + 1 if at < len(STOPS) else 0,
    }
