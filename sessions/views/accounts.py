"""The page of one's own account: name, password, keyboard, teams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.actions import members
from sessions.actions.accounts import change_password
from sessions.actions.logins import TooMany, person_of
from sessions.actions.teams import make_team
from sessions.api.access import CHOSEN_TEAM, actor_of, ip_of, teams_of
from sessions.models import Membership
from sessions.views.forms import NewPassword, Profile, TeamName
from sessions.views.said import said, say

KEYS_COOKIE = "contextlab_keys"
YEAR = 365 * 24 * 3600  # seconds
SAVED = {
    "profile": "Name and e-mail are saved.",
    "password": "The password is changed. Your other browsers are signed out.",
    "keyboard": "The choice is saved for this browser.",
}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Who one is, and the teams one is in. POST changes what its field `act` says."""
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
        # The page names the person: with the name as it is, not as it was typed.
        person.refresh_from_db()
        return _shown(request, status=422, profile=given)
    person.username, person.email = given.cleaned_data["name"], given.cleaned_data["email"]
    person.save(update_fields=["username", "email"])
    return _saved("profile")


def _password(request: HttpRequest, person: User) -> HttpResponse:
    given = NewPassword(person, request.POST)
    if not given.is_valid():
        return _shown(request, status=422, password=given)
    if "current" in given.fields:
        current = given.cleaned_data["current"]
        try:
            right = person_of(person.username, current, ip_of(request)) == person
            wrong = "" if right else "This is not your password."
        except TooMany:
            wrong = "Too many attempts failed. Try again in a quarter of an hour."
        if wrong:
            given.add_error("current", wrong)
            return _shown(request, status=422, password=given)
    change_password(person, given.cleaned_data["password"])
    update_session_auth_hash(request, person)
    return _saved("password")


def _keyboard(request: HttpRequest, person: User) -> HttpResponse:
    answer = _saved("keyboard")
    if request.POST.get("keys") == "off":
        answer.set_cookie(KEYS_COOKIE, "off", max_age=YEAR, samesite="Lax")
    else:
        answer.delete_cookie(KEYS_COOKIE, samesite="Lax")
    return answer


def _team(request: HttpRequest, person: User) -> HttpResponse:
    given = TeamName(request.POST, auto_id="team-%s")
    if not given.is_valid():
        return _shown(request, status=422, team_form=given)
    made = make_team(given.cleaned_data["name"], person, actor_of(request))
    return redirect(f"{reverse('members')}?{CHOSEN_TEAM}={made.slug}")


ACTS: dict[str, Callable[[HttpRequest, User], HttpResponse]] = {
    "profile": _profile,
    "password": _password,
    "keyboard": _keyboard,
    "team": _team,
}


def _saved(what: str) -> HttpResponse:
    return redirect(f"{reverse('account')}?saved={what}")


@require_POST
def leave_team(request: HttpRequest, slug: str) -> HttpResponse:
    """Goes out of a team; who is its last owner cannot, and is told why."""
    mine = Membership.objects.filter(user=request.user.pk, team__slug=slug).first()
    if mine is None:
        raise Http404("no such team")
    try:
        members.leave(mine, actor_of(request))
    except members.LastOwner as error:
        return _shown(request, status=409, staying=(slug, str(error)))
    say(request, f"You have left {mine.team.name}.")
    return redirect("account")


def _shown(request: HttpRequest, status: int = 200, **given: Any) -> HttpResponse:
    person = _person(request)
    mine = Membership.objects.filter(user=person).select_related("team").order_by("team__name")
    teams = teams_of(request)
    context: dict[str, Any] = {
        "section": "account",
        "team": teams[0] if teams else None,
        "saved": said(request) or SAVED.get(request.GET.get("saved", ""), ""),
        "profile": Profile(person),
        "password": NewPassword(person),
        "team_form": TeamName(auto_id="team-%s"),
        "mine": mine,
        "keys_off": request.COOKIES.get(KEYS_COOKIE) == "off",
    }
    return render(request, "accounts/account.html", context | given, status=status)
