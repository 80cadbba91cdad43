"""Members and name of a team: who is in it as what, who is asked to join, what it is called."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.actions import members as actions
from sessions.actions.invitations import VALID, invite, waiting
from sessions.actions.invitations import withdraw as withdraw_invitation
from sessions.actions.teams import rename_team
from sessions.api.access import CHOSEN_TEAM, actor_of, allowed, require, team_of, teams_of
from sessions.models import Invitation, Membership, Team
from sessions.models.teams import RIGHTS, ROLE_MAY
from sessions.views.forms import NewInvitation, NewRole, TeamName
from sessions.views.said import said, say

RANK = {role: number for number, role in enumerate(Membership.Role.values)}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def members(request: HttpRequest) -> HttpResponse:
    """Who is in the team. POST makes an invitation and shows its address, this once."""
    team = team_of(request)
    if request.method != "POST":
        return _shown(request, team)
    require(request, team, "members")
    given = NewInvitation(request.POST)
    if not given.is_valid():
        return _shown(request, team, status=422, form=given)
    role, email = given.cleaned_data["role"], given.cleaned_data["email"]
    made, token = invite(team, role, actor_of(request), email)
    address = request.build_absolute_uri(reverse("invitation", args=[token]))
    return _shown(request, team, status=201, made=made, address=address)


def _shown(request: HttpRequest, team: Team, status: int = 200, **given: Any) -> HttpResponse:
    rows = list(Membership.objects.filter(team=team).select_related("user"))
    rows.sort(key=lambda row: (RANK[row.role], row.user.get_username().casefold()))
    may_change = allowed(request, team, "members")
    context: dict[str, Any] = {
        "section": "settings",
        "page": "members",
        "team": team,
        "rows": rows,
        "roles": Membership.Role.values,
        "rights": [(role, [right in ROLE_MAY[role] for right in RIGHTS]) for role in ROLE_MAY],
        "right_names": RIGHTS,
        "may_change": may_change,
        "form": NewInvitation(),
        "days": VALID.days,
        "said": said(request),
        "invitations": waiting().filter(team=team).select_related("invited_by").order_by("-created")
        if may_change
        else [],
    }
    return render(request, "settings/members.html", context | given, status=status)


def _member_of(request: HttpRequest, member_id: int) -> Membership:
    """A member of one of the asker's teams, for changing it. Raises Http404 and a refusal."""
    rows = Membership.objects.filter(team__in=teams_of(request), pk=member_id)
    found = rows.select_related("team", "user").first()
    if found is None:
        raise Http404("no such member")
    require(request, found.team, "members")
    return found


@require_POST
def change_role(request: HttpRequest, member_id: int) -> HttpResponse:
    """Gives a member another role."""
    member = _member_of(request, member_id)
    given = NewRole(request.POST)
    if not given.is_valid():
        refusal = (member.pk, "Choose one of the roles.")
        return _shown(request, member.team, status=422, refusal=refusal)
    try:
        actions.change_role(member, given.cleaned_data["role"], actor_of(request))
    except actions.LastOwner as error:
        return _shown(request, member.team, status=409, refusal=(member.pk, str(error)))
    return _back("members", member.team)


@require_POST
def remove(request: HttpRequest, member_id: int) -> HttpResponse:
    """Takes a member out of the team; pages open in his browser get nothing more of it."""
    member = _member_of(request, member_id)
    try:
        actions.remove(member, actor_of(request))
    except actions.LastOwner as error:
        return _shown(request, member.team, status=409, refusal=(member.pk, str(error)))
    say(request, f"{member.user.get_username()} is no longer a member of {member.team.name}.")
    return _back("members", member.team)


@require_POST
def withdraw(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """Ends an invitation that nobody has accepted."""
    rows = Invitation.objects.filter(team__in=teams_of(request), pk=invitation_id)
    found = rows.select_related("team").first()
    if found is None:
        raise Http404("no such invitation")
    require(request, found.team, "members")
    withdraw_invitation(found, actor_of(request))
    return _back("members", found.team)


@require_http_methods(["GET", "HEAD", "POST"])
def team(request: HttpRequest) -> HttpResponse:
    """What the team is called; POST calls it something else."""
    its = team_of(request)
    given = TeamName(initial={"name": its.name})
    if request.method == "POST":
        require(request, its, "members")
        given = TeamName(request.POST)
        if given.is_valid():
            rename_team(its, given.cleaned_data["name"], actor_of(request))
            return _back("team", its)
    context = {
        "section": "settings",
        "page": "team",
        "team": its,
        "form": given,
        "may_change": allowed(request, its, "members"),
    }
    return render(request, "settings/team.html", context, status=422 if given.is_bound else 200)


def _back(page: str, its: Team) -> HttpResponse:
    return redirect(f"{reverse(page)}?{CHOSEN_TEAM}={its.slug}")
