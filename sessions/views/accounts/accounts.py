"""The account page: name, password, preferences, keyboard, teams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.internal.flows.password_change import finalize_password_change
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.db.models import Count, OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.access import CHOSEN_TEAM, actor_of, teams_of
from sessions.actions.accounts import members
from sessions.actions.accounts.accounts import change_profile
from sessions.actions.accounts.browsers import browsers_of, sign_out, sign_out_others
from sessions.actions.accounts.emails import unconfirmed, waiting_email
from sessions.actions.accounts.preferences import prefer
from sessions.actions.accounts.sign_on import signs_on
from sessions.actions.accounts.teams import make_team
from sessions.models import Key, Membership, Preferences
from sessions.views.accounts.forms import NewPassword, Profile, TeamName
from sessions.views.accounts.preferences import PreferencesForm
from sessions.views.web.pages import Page

KEYS_COOKIE = "contextlab_keys"
THEME_COOKIE = "contextlab_theme"
"""The theme chosen in the header, for one browser."""
YEAR = 365 * 24 * 3600  # seconds


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's account and teams. POST performs the action in `act`."""
    if request.method != "POST":
        return _shown(request)
    act = ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise BadRequest("no such act")
    return act(request, _person(request))


def _person(request: HttpRequest) -> User:
    assert request.user.is_authenticated
    return request.user


def _profile(request: HttpRequest, person: User) -> HttpResponse:
    given = Profile(person, request.POST)
    if not given.is_valid():
        # The page shows the user's name: reload the stored one instead of the rejected input.
        person.refresh_from_db()
        return _shown(request, status=422, profile=given)
    name, email = given.cleaned_data["name"], given.cleaned_data["email"].lower()
    if not email or email == person.email.lower() or not settings.EMAIL_HOST:
        change_profile(person, name, email, actor_of(request))
        return _saved(request, "Name and email saved.")
    person.refresh_from_db()
    change_profile(person, name, person.email, actor_of(request))
    return _confirm(request, person, waiting_email(person, email))


def _confirm(
    request: HttpRequest, person: User, address: EmailAddress | None = None
) -> HttpResponse:
    address = address or unconfirmed(person)
    if address is None or not settings.EMAIL_HOST:
        raise BadRequest("nothing to confirm")
    if not send_verification_email_to_address(request, address):
        return _saved(request, f"A link was sent to {address.email} a few minutes ago.")
    return _saved(request, f"Open the link that was sent to {address.email} to confirm it.")


def _password(request: HttpRequest, person: User) -> HttpResponse:
    if signs_on(person):
        raise BadRequest("no password where single sign-on gives access")
    given = NewPassword(person, request.POST)
    if not given.is_valid():
        return _shown(request, status=422, password=given)
    given.save()
    finalize_password_change(request, person)
    return _saved(request, "Password changed. Your other browsers are signed out.")


def _browser(request: HttpRequest, person: User) -> HttpResponse:
    given = request.POST.get("browser", "")
    ended = given.isdecimal() and sign_out(person, int(given[:18]), actor_of(request))
    return _saved(request, "The browser is signed out." if ended else "It was signed out before.")


def _browsers(request: HttpRequest, person: User) -> HttpResponse:
    ended = sign_out_others(person, request.session.session_key, actor_of(request))
    browsers = "1 other browser is" if ended == 1 else f"{ended} other browsers are"
    return _saved(request, f"{browsers} signed out.")


def _keyboard(request: HttpRequest, person: User) -> HttpResponse:
    answer = _saved(request, "Saved for this browser.")
    if request.POST.get("keys") == "off":
        answer.set_cookie(KEYS_COOKIE, "off", max_age=YEAR, samesite="Lax")
    else:
        answer.delete_cookie(KEYS_COOKIE, samesite="Lax")
    return answer


def _preferences(request: HttpRequest, person: User) -> HttpResponse:
    given = PreferencesForm(request.POST)
    if not given.is_valid():
        return _shown(request, status=422, preferences=given)
    prefer(request, person, **given.cleaned_data)
    answer = _saved(request, "Preferences saved. Other browsers follow at the next sign-in.")
    answer.delete_cookie(THEME_COOKIE, samesite="Lax")
    return answer


def _team(request: HttpRequest, person: User) -> HttpResponse:
    given = TeamName(request.POST, auto_id="team-%s")
    if not given.is_valid():
        return _shown(request, status=422, team_form=given)
    made = make_team(given.cleaned_data["name"], person, actor_of(request))
    return redirect(f"{reverse('members')}?{CHOSEN_TEAM}={made.slug}")


ACTS: dict[str, Callable[[HttpRequest, User], HttpResponse]] = {
    "profile": _profile,
    "confirm": _confirm,
    "password": _password,
    "browser": _browser,
    "browsers": _browsers,
    "preferences": _preferences,
    "keyboard": _keyboard,
    "team": _team,
}


def _saved(request: HttpRequest, what: str) -> HttpResponse:
    messages.success(request, what)
    return redirect("account")


@require_POST
def leave_team(request: HttpRequest, slug: str) -> HttpResponse:
    """Leave a team; the last owner is refused with a reason."""
    mine = Membership.objects.filter(user=request.user.pk, team__slug=slug).first()
    if mine is None:
        raise Http404("no such team")
    try:
        members.leave(mine, actor_of(request))
    except members.LastOwner as error:
        return _shown(request, status=409, staying=(slug, str(error)))
    messages.success(request, f"You have left {mine.team.name}.")
    return redirect("account")


def _shown(request: HttpRequest, status: int = 200, **given: Any) -> HttpResponse:
    person = _person(request)
    keys = Key.objects.filter(owner=person, team=OuterRef("team"), revoked=None)
    counted = Subquery(keys.values("team").annotate(n=Count("pk")).values("n"))
    mine = Membership.objects.filter(user=person).select_related("team").order_by("team__name")
    teams = teams_of(request)
    context: dict[str, Any] = {
        "section": "account",
        "team": teams[0] if teams else None,
        "profile": Profile(person),
        "password": NewPassword(person),
        "preferences": PreferencesForm(row=Preferences.objects.filter(user=person).first()),
        "team_form": TeamName(auto_id="team-%s"),
        "signs_on": signs_on(person),
        "unconfirmed": unconfirmed(person),
        "mails": bool(settings.EMAIL_HOST),
        "mine": mine.annotate(key_count=counted),
        "second_factor": is_mfa_enabled(person, [Authenticator.Type.TOTP]),
        "browsers": browsers_of(person, request.session.session_key),
        "keys_off": request.COOKIES.get(KEYS_COOKIE) == "off",
    }
    return render(request, "accounts/account.html", context | given, status=status)


PAGES = (
    Page(route="account/", view=account, name="account", needs={"POST": None}),
    Page(
        route="account/teams/<slug:slug>/leave/",
        view=leave_team,
        name="team_leave",
        needs={"POST": None},
    ),
)
