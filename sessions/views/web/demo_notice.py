"""What pages say of the demo, and the switch that lists its sessions beside real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from sessions.access import allowed
from sessions.models import Session, Team
from sessions.models.record.demo_data import demo_data

SWITCH = "demo"
"""Query parameter of lists: "1" shows demo sessions beside real ones."""

PLACES = ("cursor", "after")
"""Query parameters that name a page of a list, which the switch leaves."""


def asks_demo(request: HttpRequest) -> bool:
    """Whether the list is to show demo sessions beside real ones."""
    return request.GET.get(SWITCH) == "1"


def demo_notice(
    request: HttpRequest,
    team: Team,
    *,
    switch: bool = False,
    among: QuerySet[Session] | None = None,
) -> dict[str, Any]:
    """The values of `demo/demo_data.html`, the team among them; `switch` if the page has the
    parameter, `among` the demo sessions that the page could list, if not all."""
    data = demo_data(team)
    if data is not None and among is not None:
        data = replace(data, sessions=among.count())
    query = request.GET.copy()
    for name in (*PLACES, SWITCH):
        query.pop(name, None)
    if not asks_demo(request):
        query[SWITCH] = "1"
    return {
        "team": team,
        "demo_data": data,
        "demo_asked": switch and asks_demo(request),
        "demo_url": f"?{query.urlencode()}" if switch else "",
        "may_write": allowed(request, team, "write"),
    }


def left_out(notice: dict[str, Any]) -> bool:
    """Whether the page of this notice leaves out sessions of the demo."""
    data = notice["demo_data"]
    return data is not None and not data.alone and not notice["demo_asked"]
