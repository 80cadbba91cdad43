"""API keys: who owns them, when they were used, and when they end."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from sessions.access import Asker, team_to
from sessions.api.accounts import shapes
from sessions.api.web.exchange import json_answer
from sessions.models import Key

router = Router(tags=["Keys"])


def key_body(key: Key) -> dict[str, Any]:
    """A key as JSON, for API and commands; times are ISO 8601 in UTC. Needs `with_owner_role`."""
    return {
        "prefix": key.prefix,
        "name": key.name,
        "team": key.team.slug,
        "scopes": key.valid_scopes,
        "owner": key.owner.get_username() if key.owner else None,
        "created": key.created.isoformat(timespec="seconds"),
        "used": key.used.isoformat(timespec="minutes") if key.used else None,
        "expires": key.expires.isoformat(timespec="seconds") if key.expires else None,
        "ended": key.why_ended(timezone.now()) or None,
    }


@router.get("keys", response=shapes.KeysOut, url_name="keys")
def keys(request: HttpRequest) -> HttpResponse:
    """List the team's keys, without their tokens.

    `expires` is null for a key that does not expire; `ended` says why a key does not work.
    """
    team = team_to(request, "read")
    asker = getattr(request, "auth", None)
    current = asker.key.pk if isinstance(asker, Asker) and asker.key else None
    rows = Key.objects.filter(team=team).with_owner_role().select_related("team", "owner")
    found = [key_body(key) | {"current": key.pk == current} for key in rows.order_by("-created")]
    return json_answer({"keys": found})
