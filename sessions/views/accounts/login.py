"""Sign-in by name and password, or with the URL printed at startup."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.views import LoginView
from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.access import ip_of
from sessions.actions.accounts.addresses import is_usable, use_address, why_off
from sessions.actions.accounts.logins import has_passwords
from sessions.views.accounts.adapter import MINUTES, REFUSED, TOO_MANY
from sessions.views.accounts.forms import Login
from sessions.views.web.pages import Page

OURS = ("none", "same-origin")
"""Sec-Fetch-Site of an address that a person opened, and of a form or link of ours."""


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


class SignIn(LoginView):
    """The sign-in form; redirects to `next`. The refusal does not reveal whether the name
    exists."""

    form_class = Login
    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
        """Show the form."""
        return door(request, "Sign in", request.GET.get("next", ""))

    def form_invalid(self, form: Login) -> HttpResponse:
        """Say that it did not work."""
        wanted = self.request.POST.get("next", "")
        many = form.has_error("__all__", "too_many_login_attempts")
        said, status = (TOO_MANY, 429) if many else (REFUSED, 403)
        answer = door(self.request, "Sign in", wanted, form, said, status=status)
        if many:
            answer["Retry-After"] = str(MINUTES * 60)
        return answer


def onward(request: HttpRequest) -> str:
    """The URL in `next` if it is one of ours, else home."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if get_adapter(request).is_safe_url(wanted) else reverse("home")


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
        "mails": bool(settings.EMAIL_HOST),
        "address_off": why_off(),
        "sign_on": settings.SIGN_ON,
    }
    return render(request, "accounts/closed.html", context, status=status)


PAGES = (
    Page(route="login/", query=("next",), view=SignIn.as_view(), name="account_login", public=True),
    Page(route="login/<str:token>/", view=enter, name="login", public=True),
    Page(route="logout/", query=("next",), view=leave, name="logout", needs={"POST": None}),
)
