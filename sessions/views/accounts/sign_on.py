"""Sign-in at an OpenID Connect provider: the two addresses, and what is shown at the end."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from sessions.access import ip_of
from sessions.actions.accounts.sign_ins import note_sign_in
from sessions.views.accounts.login import OURS, closed, door
from sessions.views.web.pages import Page

HOW = "single sign-on"
"""As the audit log names it."""
FAILED = "The sign-in there did not work, or took too long. Try again."
_SAID = (
    "code", "state", "scope", "iss", "session_state", "error", "error_description", "error_uri",
    "authuser", "hd", "prompt", "client_info",
)  # fmt: skip
"""Query parameters that providers add to the callback."""


@login_not_required
@never_cache
@require_GET
def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Send the browser to the provider. Other sites cannot begin this."""
    if request.headers.get("Sec-Fetch-Site") not in (None, *OURS):
        return closed(request)
    from allauth.socialaccount.providers.openid_connect.views import login as to_provider

    return to_provider(request, provider_id)


@login_not_required
@never_cache
@require_GET
def arrive(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Take the provider's answer; `contextlab.accounts.single_sign_on` goes on."""
    from allauth.socialaccount.providers.openid_connect.views import callback

    return callback(request, provider_id)


def enter(request: HttpRequest, person: User, wanted: str | None) -> HttpResponse:
    """Sign in the person, and go to the page that was asked for."""
    assert settings.SIGN_ON is not None
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    request.session.set_expiry(settings.SIGN_ON.seconds)
    note_sign_in(person, ip_of(request), HOW)
    return redirect(wanted or "home")


def refused(request: HttpRequest, why: str) -> HttpResponse:
    """The sign-in page for a person who has no access."""
    return door(request, "Sign in", "", refusal=why, status=403)


def failed(request: HttpRequest) -> HttpResponse:
    """The sign-in page after an error of the provider."""
    return door(request, "Sign in", "", refusal=FAILED, status=403)


PAGES = (
    (
        Page(
            route="oidc/<str:provider_id>/login/",
            query=("next",),
            view=begin,
            name="openid_connect_login",
            public=True,
        ),
        Page(
            route="oidc/<str:provider_id>/login/callback/",
            query=_SAID,
            view=arrive,
            name="openid_connect_callback",
            public=True,
        ),
    )
    if settings.SIGN_ON
    else ()
)
