"""How agents reach this server: what commands on a page must name."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from sessions.access import allowed
from sessions.models import Team


def reached(request: HttpRequest, team: Team) -> dict[str, Any]:
    """For templates: the server's address, whether agents run on other machines than it does, and
    then whether its address has an agent proxy; and whether the sender may make keys."""
    return {
        "base_url": request.build_absolute_uri(reverse("home")).rstrip("/"),
        "others_reach": bool(settings.PUBLIC),
        "agent_proxy": bool(settings.PUBLIC) and settings.AGENT_PROXY,
        "may_make_keys": allowed(request, team, "keys"),
    }
