"""The page of an invitation: who invites to which team, and accepting it."""

from __future__ import annotations

from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from sessions.access import CHOSEN_TEAM, ip_of
from sessions.actions.accounts import audit
from sessions.actions.accounts.accounts import add_account, new_account
from sessions.actions.accounts.emails import unconfirmed
from sessions.actions.accounts.invitations import (
    AlreadyMember,
    NotUsable,
    accept,
    by_token,
    waiting,
)
from sessions.models import Invitation, Membership, Team
from sessions.views.accounts.forms import Login, NewAccount
from sessions.views.web.pages import Page

BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation; POST accepts it, as the signed-in user or with a new account.

    Used, withdrawn, expired and unknown ones get the same 404, except that the user who accepted it
    is redirected to the team.
    """
    found = by_token(token)
    if found is None or not waiting().filter(pk=found.pk).exists():
        if found is not None and _is_in(request, found):
            return _into(found.team)
        return _gone(request)
    if request.method != "POST":
        return _shown(request, found)
    try:
        if request.user.is_authenticated:
            return _accepted(request, found, request.user)
        return _with_account(request, found)
    except NotUsable:
        return _gone(request)


def _is_in(request: HttpRequest, found: Invitation) -> bool:
    if not request.user.is_authenticated or found.accepted_by_id != request.user.pk:
        return False
    return Membership.objects.filter(team=found.team, user=request.user).exists()


def _accepted(request: HttpRequest, found: Invitation, user: User) -> HttpResponse:
    try:
        accept(found, user, audit.person(user, ip_of(request)))
    except AlreadyMember:
        return _shown(request, found, status=409)
    return _into(found.team)


def _with_account(request: HttpRequest, found: Invitation) -> HttpResponse:
    given = NewAccount(request.POST)
    if not given.is_valid():
        return _shown(request, found, given, status=422)
    name, email, password = (given.cleaned_data[field] for field in ("name", "email", "password"))
    try:
        user = new_account(name, email, password)
        with transaction.atomic():
            add_account(user)
            accept(found, user, audit.person(user, ip_of(request)))
    except ValidationError as error:
        given.add_error(None, error)
        return _shown(request, found, given, status=422)
    login(request, user, backend=BACKEND)
    if settings.EMAIL_HOST and (address := unconfirmed(user)):
        send_verification_email_to_address(request, address)
    return _into(found.team)


def _into(team: Team) -> HttpResponse:
    return redirect(f"{reverse('home')}?{CHOSEN_TEAM}={team.slug}")


def _shown(
    request: HttpRequest, found: Invitation, given: NewAccount | None = None, status: int = 200
) -> HttpResponse:
    member = Membership.objects.filter(team=found.team, user=request.user.pk).first()
    context = {
        "invitation": found,
        "member": member,
        "form": given or NewAccount(initial={"email": found.email}),
        "login": Login(auto_id="login-%s"),
        "next": request.path,
    }
    return render(request, "accounts/invitation.html", context, status=status)


def _gone(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/no_invitation.html", status=404)


PAGES = (Page(route="invitations/<str:token>/", view=invitation, name="invitation", public=True),)
