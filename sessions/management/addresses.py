"""Addresses of this server, for commands that print one."""

from __future__ import annotations

from django.urls import reverse

from sessions.actions.web.addresses import base_url


def login_url(token: str) -> str:
    """The printed address with that token."""
    return f"{base_url()}{reverse('login', args=[token])}"
