"""API keys of a team: create, show once, revoke, take over, give to the team."""

from __future__ import annotations

from datetime import timedelta

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic import RedirectView

from sessions.access import actor_of, allowed, require, team_of, teams_of
from sessions.actions.accounts.keys import create_key, give_to_team, revoke_key, take_over
from sessions.models import Key
from sessions.views.web.pages import Link, Page

NAME_CHARS = 100
SCOPES = {"write": ("write",), "read": ("read",)}
"""Scopes offered by the form; a key that can write can also read."""
DAYS = {"": None, "30": 30, "90": 90, "365": 365}
"""Days until a key expires, as offered by the form."""


@never_cache
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """List the team's keys. POST creates one and shows its token once, as JSON if requested.

    Only owners create service accounts: they stay when the person who knows the token leaves.
    """
    team = team_of(request)
    token, made = "", None
    if request.method == "POST":
        service = request.POST.get("of") == "team"
        require(request, team, "members" if service else "keys")
        name = request.POST.get("name", "").replace("\x00", "").strip()[:NAME_CHARS]
        scopes = SCOPES.get(request.POST.get("scope", "write"), SCOPES["read"])
        days = DAYS.get(request.POST.get("expires", ""), 30)
        expires = timezone.now() + timedelta(days=days) if days else None
        made, token = create_key(
            team, name, scopes, actor_of(request), service=service, expires=expires
        )
        if request.headers.get("Accept") == "application/json":
            return JsonResponse({"token": token, "prefix": made.prefix, "name": name}, status=201)
    now = timezone.now()
    rows = Key.objects.filter(team=team).with_owner_role().select_related("owner")
    states = [(row, row.why_ended(now)) for row in rows.order_by("-created")]
    context = {
        "section": "settings",
        "page": "keys",
        "team": team,
        "rows": [row for row, ended in states if not ended],
        "ended": [state for state in states if state[1]],
        "token": token,
        "made": made,
        "may_make": allowed(request, team, "keys"),
        "may_give": allowed(request, team, "members"),
        "base_url": request.build_absolute_uri(reverse("home")).rstrip("/"),
        "name_chars": NAME_CHARS,
        "days": [days for days in DAYS.values() if days],
    }
    return render(request, "accounts/keys.html", context, status=201 if made else 200)


@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """Revoke a key immediately."""
    key = _key_of(request, prefix)
    revoke_key(key, actor_of(request))
    return redirect(f"{reverse('keys')}?team={key.team.slug}")


@require_POST
def take(request: HttpRequest, prefix: str) -> HttpResponse:
    """Become the owner of a key, which then does not end with its former owner's membership."""
    key = _key_of(request, prefix)
    assert request.user.is_authenticated
    take_over(key, request.user, actor_of(request))
    return redirect(f"{reverse('keys')}?team={key.team.slug}")


@require_POST
def give(request: HttpRequest, prefix: str) -> HttpResponse:
    """Make a key a service account."""
    key = _key_of(request, prefix)
    require(request, key.team, "members")
    give_to_team(key, actor_of(request))
    return redirect(f"{reverse('keys')}?team={key.team.slug}")


def _key_of(request: HttpRequest, prefix: str) -> Key:
    """A key of one of the requester's teams, for changes. Raises Http404 and what `require`
    raises."""
    rows = Key.objects.filter(team__in=teams_of(request), prefix=prefix)
    found = rows.select_related("team", "owner").first()
    if found is None:
        raise Http404("no such key")
    require(request, found.team, "keys")
    return found


PAGES = (
    Page(
        route="settings/",
        view=RedirectView.as_view(pattern_name="keys", http_method_names=["get", "head"]),
        name="settings",
    ),
    Page(
        route="settings/keys/",
        view=keys,
        name="keys",
        needs={"POST": "keys"},
        link=Link(110, "Settings", "settings", "g k", "settings", "Manage"),
        about="keys, members, invite, teams, audit log, masking, notifications, erasure",
    ),
    Page(
        route="settings/keys/<str:prefix>/revoke/",
        view=revoke,
        name="key_revoke",
        needs={"POST": "keys"},
    ),
    Page(
        route="settings/keys/<str:prefix>/take/",
        view=take,
        name="key_take",
        needs={"POST": "keys"},
    ),
    Page(
        route="settings/keys/<str:prefix>/give/",
        view=give,
        name="key_give",
        needs={"POST": "members"},
    ),
)
