"""Sign-in by name and password, or with the URL printed at startup."""

import math

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.access import ip_of
from sessions.actions.accounts.addresses import is_usable, use_address, why_off
from sessions.actions.accounts.logins import (
    KNOWN_FOR,
    TooMany,
    has_passwords,
    known_browser,
    person_of,
    remember,
)
from sessions.actions.accounts.sign_ins import note_sign_in
from sessions.views.accounts.forms import Login
from sessions.views.web.pages import Page

KNOWN_COOKIE = "contextlab_known"
OURS = ("none", "same-origin")
"""Sec-Fetch-Site of an address that a person opened, and of a form or link of ours."""
REFUSED = "Incorrect name or password. Check both and try again."


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def enter(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in the local user with a printed address, which works once.

    A GET signs in only if the browser says that a person opened the address or another page of
    ours led there; others, such as previews, get a page with a button. Other sites are refused.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site not in (None, *OURS):
        return closed(request)
    if request.method == "GET" and (site is None or "Sec-Purpose" in request.headers):
        if not is_usable(token):
            return closed(request)
        return render(request, "accounts/enter.html", {"token": token})
    person = use_address(token, ip_of(request))
    if person is None:
        return closed(request)
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in form; redirects to `next`.

    The refusal does not reveal whether the name exists.
    """
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect(onward(request))
        return door(request, "Sign in", request.GET.get("next", ""))
    given, wanted = Login(request.POST), request.POST.get("next", "")
    try:
        person = _person(request, given)
    except TooMany as error:
        seconds = max(1, math.ceil((error.until - timezone.now()).total_seconds()))
        minutes = math.ceil(seconds / 60)
        soon = "a minute" if minutes == 1 else f"{minutes} minutes"
        refusal = f"Too many failed attempts. Try again in {soon}."
        answer = door(request, "Sign in", wanted, given, refusal, status=429)
        answer["Retry-After"] = str(seconds)
        return answer
    if person is None:
        return door(request, "Sign in", wanted, given, REFUSED, status=403)
    login(request, person)
    note_sign_in(person, ip_of(request), "password")
    answer = redirect(onward(request))
    answer.set_cookie(
        KNOWN_COOKIE,
        remember(person),
        max_age=KNOWN_FOR,
        path=reverse("login_form"),
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return answer


def _person(request: HttpRequest, given: Login) -> User | None:
    if not given.is_valid():
        return None
    browser = known_browser(request.COOKIES.get(KNOWN_COOKIE, ""))
    name, password = given.cleaned_data["name"], given.cleaned_data["password"]
    return person_of(name, password, ip_of(request), browser)


def onward(request: HttpRequest) -> str:
    """The URL in `next` if it is one of ours, else home."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours and wanted.startswith("/") else reverse("home")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Sign out; open pages lose their socket within seconds."""
    logout(request)
    return redirect(onward(request))


@login_not_required
@never_cache
def closed(request: HttpRequest) -> HttpResponse:
    """A 403 page that explains how to sign in."""
    wanted = request.get_full_path() if request.method == "GET" else ""
    return door(request, "Not signed in", wanted, status=403)


def door(
    request: HttpRequest,
    title: str,
    wanted: str,
    given: Login | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    """The sign-in page; it has a form if any account has a password."""
    context = {
        "title": title,
        "form": given or Login(),
        "next": wanted,
        "refusal": refusal,
        "has_passwords": has_passwords(),
        "address_off": why_off(),
        "sign_on": settings.SIGN_ON,
    }
    return render(request, "accounts/closed.html", context, status=status)


PAGES = (
    Page(route="login/", query=("next",), view=sign_in, name="login_form", public=True),
    Page(route="login/<str:token>/", view=enter, name="login", public=True),
    Page(route="logout/", query=("next",), view=leave, name="logout", needs={"POST": None}),
)
