"""The door: the address that was printed at the start logs the local user in."""

import hmac
import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sessions.actions.teams import local_user
from sessions.api import problems
from sessions.api.door import BELOW

log = logging.getLogger(__name__)


@login_not_required
@never_cache
@require_GET
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Logs the local user in when the token is the one kept in the data directory."""
    if not hmac.compare_digest(token.encode(), settings.LOGIN_TOKEN.encode()):
        return closed(request)
    login(request, local_user(), backend="django.contrib.auth.backends.ModelBackend")
    return redirect("/")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Signs out; pages that are still open lose their socket within seconds."""
    logout(request)
    return redirect("/")


@login_not_required
@never_cache
def closed(request: HttpRequest) -> HttpResponse:
    """403 and where the way in is found."""
    return render(request, "login/closed.html", status=403)


class SignedIn(LoginRequiredMiddleware):
    """Every page asks for a user, unless its view is marked login_not_required.

    Without a database nobody knows who asks, so that it is also said here that there is none.
    """

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponseBase | None:
        """Closed to who is not signed in; 503 where that cannot be looked up."""
        try:
            return super().process_view(request, *view)
        except (OperationalError, InterfaceError) as error:
            return self.process_exception(request, error)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """503 for a page that found no database."""
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        if request.path_info.startswith(BELOW):
            return problems.busy(request, error)
        log.warning("no database for a page: %s", type(error).__name__)
        text = "The database does not answer at the moment. Try again in a few seconds.\n"
        headers = {"Retry-After": str(problems.BUSY_SECONDS), "Cache-Control": "no-store"}
        return HttpResponse(text, status=503, content_type="text/plain", headers=headers)

    # Django's would redirect, and says so in its type.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponse:
        """Says how to get in, at the same address: no stack of redirects."""
        return closed(request)
