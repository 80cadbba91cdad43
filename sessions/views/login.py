"""The door: a name and a password, or the address that was printed at the start."""

import hmac
import logging
import math
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from sessions.actions.logins import TooMany, has_passwords, person_of
from sessions.actions.teams import local_user
from sessions.api import problems
from sessions.api.access import ip_of
from sessions.api.door import BELOW
from sessions.views.forms import Login

log = logging.getLogger(__name__)

REFUSED = "That name and password do not go together. Look at both, and try again."


@login_not_required
@never_cache
@require_GET
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Logs the local user in when the token is the one kept in the data directory."""
    if not hmac.compare_digest(token.encode(), settings.LOGIN_TOKEN.encode()):
        return closed(request)
    login(request, local_user(), backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The form for a name and a password; leads on to `next`.

    What is refused is refused alike, whether there is such a name or not.
    """
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(onward(request))
        return _door(request, "Sign in", request.GET.get("next", ""))
    given, wanted = Login(request.POST), request.POST.get("next", "")
    try:
        person = _person(request, given)
    except TooMany as error:
        seconds = max(1, math.ceil((error.until - timezone.now()).total_seconds()))
        minutes = math.ceil(seconds / 60)
        soon = "a minute" if minutes == 1 else f"{minutes} minutes"
        refusal = f"Too many attempts failed. Try again in {soon}."
        answer = _door(request, "Sign in", wanted, given, refusal, status=429)
        answer["Retry-After"] = str(seconds)
        return answer
    if person is None:
        return _door(request, "Sign in", wanted, given, REFUSED, status=403)
    login(request, person)
    return redirect(onward(request))


def _person(request: HttpRequest, given: Login) -> User | None:
    if not given.is_valid():
        return None
    return person_of(given.cleaned_data["name"], given.cleaned_data["password"], ip_of(request))


def onward(request: HttpRequest) -> str:
    """Where `next` of the form or the address leads: a place of ours, or home."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else reverse("home")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Signs out; pages that are still open lose their socket within seconds."""
    logout(request)
    return redirect(onward(request))


@login_not_required
@never_cache
def closed(request: HttpRequest) -> HttpResponse:
    """403 and where the way in is found."""
    wanted = request.get_full_path() if request.method == "GET" else ""
    return _door(request, "Not signed in", wanted, status=403)


def _door(
    request: HttpRequest,
    title: str,
    wanted: str,
    given: Login | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page with the form, where anybody has a password, and with the other way in."""
    context = {
        "title": title,
        "form": given or Login(),
        "next": wanted,
        "refusal": refusal,
        "has_passwords": has_passwords(),
    }
    return render(request, "login/closed.html", context, status=status)


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
