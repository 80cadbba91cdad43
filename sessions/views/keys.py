"""The keys of a team's programs: made, shown once, revoked."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.actions.keys import create_key, revoke_key
from sessions.api.access import team_of
from sessions.models import Key, Membership, Team

NAME_CHARS = 100
SCOPES = {"write": ("write",), "read": ("read",)}
"""What the form offers; a key that writes also reads."""


def may_write(request: HttpRequest, team: Team) -> bool:
    """Whether the person may change things of a team, and so make keys that do."""
    roles = (Membership.Role.OWNER, Membership.Role.EDITOR)
    return Membership.objects.filter(user=request.user.pk, team=team, role__in=roles).exists()


@never_cache
@require_http_methods(["GET", "POST"])
def keys(request: HttpRequest) -> HttpResponse:
    """The team's keys. POST makes one and shows its token, this once: as JSON if asked for."""
    team = team_of(request)
    writes = may_write(request, team)
    token, made = "", None
    if request.method == "POST":
        if not writes:
            raise PermissionDenied
        name = request.POST.get("name", "").replace("\x00", "").strip()[:NAME_CHARS]
        scopes = SCOPES.get(request.POST.get("scope", "write"), SCOPES["read"])
        made, token = create_key(team, name, scopes)
        if request.headers.get("Accept") == "application/json":
            return JsonResponse({"token": token, "prefix": made.prefix, "name": name}, status=201)
    rows = Key.objects.filter(team=team).order_by("-created")
    context = {
        "section": "keys",
        "team": team,
        "rows": [row for row in rows if row.revoked is None],
        "revoked": [row for row in rows if row.revoked is not None],
        "token": token,
        "made": made,
        "may_write": writes,
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        "name_chars": NAME_CHARS,
    }
    return render(request, "settings/keys.html", context, status=201 if made else 200)


@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """Ends a key of the team at once."""
    team = team_of(request)
    if not may_write(request, team):
        raise PermissionDenied
    key = Key.objects.filter(team=team, prefix=prefix).first()
    if key is None:
        raise Http404("no such key")
    revoke_key(key)
    return redirect("keys")
