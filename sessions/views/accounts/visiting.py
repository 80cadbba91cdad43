"""Middleware that notes visits: opening any page of a team is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from sessions.access import by_key, teams_of
from sessions.actions.accounts.visits import note_visit


class Visiting:
    """Notes that the person signed in opens a page. What open pages ask for by themselves does not
    go on with a visit."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *_: Any) -> None:
        """Note the visit, once `SignedIn` knows who asks."""
        if not getattr(view, "login_required", True) or by_key(request) or not _opens(request):
            return
        if isinstance(request.user, User) and (teams := teams_of(request)):
            note_visit(request.user, teams[0], timezone.now())


def _opens(request: HttpRequest) -> bool:
    """Whether a browser asks for a page to show, not a script for a part of one."""
    headers = request.headers
    page = "text/html" in headers.get("Accept", "text/html") and "HX-Request" not in headers
    return request.method == "GET" and page and headers.get("Sec-Fetch-Mode") in (None, "navigate")
