"""The card of the guided tour."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from sessions.actions.accounts.preferences import preferred
from sessions.actions.demo.tour_stops import STOPS

register = template.Library()


@register.inclusion_tag("demo/tour.html", takes_context=True)
def tour_card(context: Context) -> dict[str, Any]:
    """The current stop, if the tour is under way."""
    request = context.get("request")
    at: int = (preferred(request).get("tour") if request is not None else None) or 0
    if at not in range(1, len(STOPS) + 1):
        return {}
    return {
        "stop": STOPS[at - 1],
        "number": at,
        "of": len(STOPS),
        "before": at - 1,
        "after": at + 1 if at < len(STOPS) else 0,
    }
