"""A person's preferences, copied into the browser session: pages need no query for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from sessions.models import Preferences
from sessions.models.accounts.preferences import PREFERRED

KEY = "preferences"
"""Key in the browser session."""


def preferred(request: HttpRequest) -> Mapping[str, Any]:
    """The preferences in effect in this browser; empty for people who set none, and for keys."""
    found: Mapping[str, Any] = getattr(request, "session", {}).get(KEY, {})
    return found


def prefer(request: HttpRequest, person: User, **chosen: Any) -> None:
    """Store preferences and apply them in this browser; others follow at the next sign-in."""
    row, _ = Preferences.objects.update_or_create(user=person, defaults=chosen)
    _copy(request, row)


def signed_in(request: HttpRequest | None, user: User, **_: Any) -> None:
    """Copy the stored preferences to a new browser session."""
    row = Preferences.objects.filter(user=user.pk).first()
    if request is not None and row is not None:
        _copy(request, row)


def _copy(request: HttpRequest, row: Preferences) -> None:
    request.session[KEY] = {name: getattr(row, name) for name in PREFERRED}
