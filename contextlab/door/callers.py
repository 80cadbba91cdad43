"""Who asks: whose lane a request waits in, and whether its body is read.

Django checks credentials again with every request; what is decided here grants nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from time import monotonic
from typing import NamedTuple

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest

from sessions.actions.accounts.keys import check_key

KNOWN_SECONDS = 5.0
"""How long valid credentials are remembered, and so how long a revoked key may still send bodies
for nothing."""
MOST_KNOWN = 10_000


class Credentials(NamedTuple):
    """An API key, or the key of a browser session."""

    kind: str
    secret: str


def credentials_of(authorization: bytes, cookies: Iterable[bytes]) -> Credentials | None:
    """The credentials in a request's headers; a key counts alone, as in the API."""
    scheme, _, token = authorization.decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return Credentials("key", token.strip())
    name = settings.SESSION_COOKIE_NAME
    for header in cookies:
        if name.encode() in header:
            try:
                found = SimpleCookie(header.decode("latin-1")).get(name)
            except CookieError:
                continue
            if found is not None and found.value:
                return Credentials("session", found.value)
    return None


def payer_of(credentials: Credentials) -> str:
    """The lane of valid credentials, a team's or a person's; "" if they are not valid.

    Reads the database.
    """
    if credentials.kind == "key":
        key = check_key(credentials.secret)
        return f"team {key.team_id}" if key is not None else ""
    request = HttpRequest()
    store = import_module(settings.SESSION_ENGINE).SessionStore
    request.session = store(credentials.secret)
    user = auth.get_user(request)
    return f"person {user.pk}" if user.is_authenticated else ""


class Known:
    """Remembers the payers of valid credentials for KNOWN_SECONDS, by their hash."""

    def __init__(self) -> None:
        self._payers: dict[bytes, tuple[str, float]] = {}

    def payer(self, credentials: Credentials) -> str:
        """The payer; "" if it is not known now."""
        payer, until = self._payers.get(_digest(credentials), ("", 0.0))
        return payer if until > monotonic() else ""

    def keep(self, credentials: Credentials, payer: str) -> None:
        """Remember the payer of credentials that were just checked."""
        if len(self._payers) >= MOST_KNOWN:
            self._payers.clear()
        self._payers[_digest(credentials)] = payer, monotonic() + KNOWN_SECONDS


def _digest(credentials: Credentials) -> bytes:
    return hashlib.sha256("\0".join(credentials).encode("latin-1", "replace")).digest()
