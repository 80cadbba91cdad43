"""What pages with figures say of the demo."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from sessions.access import allowed
from sessions.models import Team
from sessions.models.record.demo_data import demo_data


def demo_notice(request: HttpRequest, team: Team) -> dict[str, Any]:
    """The values of `demo/demo_data.html`, the team among them."""
    may_write = allowed(request, team, "write")
    return {"team": team, "demo_data": demo_data(team), "may_write": may_write}
