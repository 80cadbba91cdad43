"""Middleware that every request passes: who is signed in, what refusals are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from sessions.access import API, ip_of
from sessions.actions.accounts.browsers import is_stale, note_browser
from sessions.actions.accounts.logins import network
from sessions.api.web import problems
from sessions.models.record.objects import ObjectsAway
from sessions.views.accounts.login import closed
from sessions.views.accounts.second_factor import leads_there

log = logging.getLogger(__name__)

_SENTENCES = {
    400: "The request could not be parsed. Check its headers and body.",
    403: "Permission denied.",
    404: "Nothing was found at this URL. GET /api/v1/openapi.json lists all URLs.",
    405: "This URL accepts only {allow}.",
    413: "The request is too large. Split it into several.",
    500: "The server failed. Its log has the details.",
}


class Door:
    """Middleware before all others that refuse: refusals of API requests become problem+json."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        response = self.get_response(request)
        return _as_problem(response) if request.path_info.startswith(API) else response


def _as_problem(response: HttpResponse) -> HttpResponse:
    """Convert an error response to problem+json, unless it is already."""
    status = response.status_code
    if status < 400 or response.headers.get("Content-Type") == problems.MEDIA_TYPE:
        return response
    allow = response.headers.get("Allow", "")
    title = HTTPStatus(status).phrase
    detail = _SENTENCES.get(status, f"{title}.").format(allow=allow)
    answer = problems.problem(status, title, detail, headers={"Allow": allow} if allow else None)
    answer.cookies = response.cookies
    return answer


class SignedIn(LoginRequiredMiddleware):
    """Middleware that requires a signed-in user unless the view is marked login_not_required.

    Sessions need the database, so this also answers 503 if it is unavailable.
    """

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponseBase | None:
        """Refuse users who are not signed in; 503 if that cannot be determined."""
        try:
            refusal = super().process_view(request, *view)
            if refusal is None and getattr(view[0], "login_required", True) and is_stale(request):
                assert request.user.is_authenticated
                note_browser(request, request.user, network(ip_of(request)))
            if refusal is None and getattr(view[0], "login_required", True):
                return redirect("mfa_activate_totp") if leads_there(request) else None
            return refusal
        except (OperationalError, InterfaceError) as error:
            return self.process_exception(request, error)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """A 503 response for a page without database."""
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        if request.path_info.startswith(API):
            return problems.busy(request, error)
        what = "Object storage" if isinstance(error, ObjectsAway) else "The database"
        log.warning("%s is away for a page: %s", what, type(error).__name__)
        text = f"{what} is not responding. Try again in a few seconds.\n"
        headers = {"Retry-After": str(problems.BUSY_SECONDS), "Cache-Control": "no-store"}
        return HttpResponse(text, status=503, content_type="text/plain", headers=headers)

    # Django's version redirects, and is typed accordingly.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponse:
        """Show the sign-in page at the same URL, without redirects."""
        return closed(request)
