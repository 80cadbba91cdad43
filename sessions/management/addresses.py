"""Addresses of this server, for commands that print one."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse


def base_url() -> str:
    """The first trusted origin in the settings, else the address `serve` listens on."""
    named = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    if named:
        return named[0]
    host = settings.HOST
    if host in ("", "0.0.0.0", "::"):  # noqa: S104
        host = "127.0.0.1"
    return f"http://[{host}]:{settings.PORT}" if ":" in host else f"http://{host}:{settings.PORT}"


def login_url(token: str) -> str:
    """The printed address with that token."""
    return f"{base_url()}{reverse('login', args=[token])}"
