"""API keys of a team: create, show once, revoke."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic import RedirectView

from sessions.access import actor_of, allowed, require, team_of, teams_of
from sessions.actions.accounts.keys import create_key, revoke_key
from sessions.models import Key
from sessions.views.web.pages import Link, Page

NAME_CHARS = 100
SCOPES = {"write": ("write",), "read": ("read",)}
"""Scopes offered by the form; a key that can write can also read."""


@never_cache
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """List the team's keys. POST creates one and shows its token once, as JSON if requested."""
    team = team_of(request)
    token, made = "", None
    if request.method == "POST":
        require(request, team, "keys")
        name = request.POST.get("name", "").replace("\x00", "").strip()[:NAME_CHARS]
        scopes = SCOPES.get(request.POST.get("scope", "write"), SCOPES["read"])
        made, token = create_key(team, name, scopes, actor_of(request))
        if request.headers.get("Accept") == "application/json":
            return JsonResponse({"token": token, "prefix": made.prefix, "name": name}, status=201)
    rows = Key.objects.filter(team=team).order_by("-created")
    context = {
        "section": "settings",
        "page": "keys",
        "team": team,
        "rows": [row for row in rows if row.revoked is None],
        "revoked": [row for row in rows if row.revoked is not None],
        "token": token,
        "made": made,
        "may_make": allowed(request, team, "keys"),
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        "name_chars": NAME_CHARS,
    }
    return render(request, "accounts/keys.html", context, status=201 if made else 200)


@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """Revoke a key immediately."""
    found = Key.objects.filter(team__in=teams_of(request), prefix=prefix).select_related("team")
    if not found:
        raise Http404("no such key")
    require(request, found[0].team, "keys")
    revoke_key(found[0], actor_of(request))
    return redirect(f"{reverse('keys')}?team={found[0].team.slug}")


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
        link=Link(110, "Settings", "settings", "g k", "settings", last=True),
    ),
    Page(
        route="settings/keys/<str:prefix>/revoke/",
        view=revoke,
        name="key_revoke",
        needs={"POST": "keys"},
    ),
)
