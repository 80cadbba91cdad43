"""The card of the guided tour."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from sessions.actions.demo.tour_stops import COOKIE, STOPS

register = template.Library()


@register.inclusion_tag("demo/tour.html", takes_context=True)
def tour_card(context: Context) -> dict[str, Any]:
    """The current stop, if the tour is under way."""
    request = context.get("request")
    number = request.COOKIES.get(COOKIE, "") if request is not None else ""
    if number not in {str(at) for at in range(1, len(STOPS) + 1)}:
        return {}
    at = int(number)
    return {
        "stop": STOPS[at - 1],
        "number": at,
        "of": len(STOPS),
        "before": at - 1,
        "after": at + 1 if at < len(STOPS) else 0,
    }
