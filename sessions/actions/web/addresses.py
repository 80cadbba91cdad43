"""The address of this server, for links outside its pages."""

from __future__ import annotations

from django.conf import settings


def base_url() -> str:
    """The first trusted origin in the settings, else the address `serve` listens on."""
    named = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    if named:
        return named[0]
    host = settings.HOST
    if host in ("", "0.0.0.0", "::"):  # noqa: S104
        host = "127.0.0.1"
    return f"http://[{host}]:{settings.PORT}" if ":" in host else f"http://{host}:{settings.PORT}"
