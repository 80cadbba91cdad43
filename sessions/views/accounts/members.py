"""Members, invitations and name of a team."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from sessions.access import CHOSEN_TEAM, actor_of, allowed, require, team_of, teams_of
from sessions.actions.accounts import members as actions
from sessions.actions.accounts.invitations import VALID, invite, usual_role, waiting
from sessions.actions.accounts.invitations import withdraw as withdraw_invitation
from sessions.actions.accounts.resets import NotTheirs, reset_path
from sessions.actions.accounts.second_factor import require_second_factor
from sessions.actions.accounts.teams import rename_team
from sessions.actions.operations.quotas import used_by
from sessions.models import Invitation, Membership, Team
from sessions.models.accounts.teams import RIGHTS, ROLE_MAY
from sessions.views.accounts.forms import NewInvitation, NewRole, TeamName
from sessions.views.web.pages import Page

RANK = {role: number for number, role in enumerate(Membership.Role.values)}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def members(request: HttpRequest) -> HttpResponse:
    """List the members. POST creates an invitation and shows its URL once."""
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
    theirs = Count("user__keys", filter=Q(user__keys__team=team, user__keys__revoked=None))
    members = Membership.objects.filter(team=team).select_related("user")
    rows = list(members.annotate(key_count=theirs))
    rows.sort(key=lambda row: (RANK[row.role], row.user.get_username().casefold()))
    may_change = allowed(request, team, "members")
    context: dict[str, Any] = {
        "section": "settings",
        "page": "members",
        "team": team,
        "rows": rows,
        "roles": Membership.Role.values,
        "rights": [(role, [(one, one in ROLE_MAY[role]) for one in RIGHTS]) for role in ROLE_MAY],
        "right_names": RIGHTS,
        "may_change": may_change,
        "form": NewInvitation(initial={"role": usual_role(team)}),
        "days": VALID.days,
        "invitations": waiting().filter(team=team).select_related("invited_by").order_by("-created")
        if may_change
        else [],
    }
    return render(request, "accounts/members.html", context | given, status=status)


def _member_of(request: HttpRequest, member_id: int) -> Membership:
    """A member of one of the requester's teams, for changes. Raises Http404 and what `require`
    raises."""
    rows = Membership.objects.filter(team__in=teams_of(request), pk=member_id)
    found = rows.select_related("team", "user").first()
    if found is None:
        raise Http404("no such member")
    require(request, found.team, "members")
    return found


@require_POST
def change_role(request: HttpRequest, member_id: int) -> HttpResponse:
    """Change a member's role."""
    member = _member_of(request, member_id)
    given = NewRole(request.POST)
    if not given.is_valid():
        refusal = (member.pk, "Choose one of the roles.")
        return _shown(request, member.team, status=422, refusal=refusal)
    try:
        ended = actions.change_role(member, given.cleaned_data["role"], actor_of(request))
    except actions.LastOwner as error:
        return _shown(request, member.team, status=409, refusal=(member.pk, str(error)))
    if ended:
        keys = "1 key" if ended == 1 else f"{ended} keys"
        messages.warning(request, f"{keys} of {member.user.get_username()} ended with the role.")
    return _back("members", member.team)


@require_POST
def remove(request: HttpRequest, member_id: int) -> HttpResponse:
    """Remove a member; pages open in their browser get no more updates."""
    member = _member_of(request, member_id)
    try:
        take_keys = "keys" in request.POST and allowed(request, member.team, "keys")
        actions.remove(member, actor_of(request), take_keys=take_keys)
    except actions.LastOwner as error:
        return _shown(request, member.team, status=409, refusal=(member.pk, str(error)))
    gone = f"{member.user.get_username()} is no longer a member of {member.team.name}."
    messages.success(request, gone)
    return _back("members", member.team)


@never_cache
@require_POST
def link(request: HttpRequest, member_id: int) -> HttpResponse:
    """Make a link with which a member sets a new password, and show it once."""
    member = _member_of(request, member_id)
    try:
        path = reset_path(member, actor_of(request))
    except NotTheirs as error:
        return _shown(request, member.team, status=409, refusal=(member.pk, str(error)))
    made = {"name": member.user.get_username(), "address": request.build_absolute_uri(path)}
    return _shown(request, member.team, status=201, reset=made)


@require_POST
def withdraw(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """Withdraw an open invitation."""
    rows = Invitation.objects.filter(team__in=teams_of(request), pk=invitation_id)
    found = rows.select_related("team").first()
    if found is None:
        raise Http404("no such invitation")
    require(request, found.team, "members")
    withdraw_invitation(found, actor_of(request))
    return _back("members", found.team)


@require_http_methods(["GET", "HEAD", "POST"])
def team(request: HttpRequest) -> HttpResponse:
    """Show the team's name and whether it requires a second factor; POST changes one of them."""
    its = team_of(request)
    given = TeamName(initial={"name": its.name})
    if request.method == "POST":
        require(request, its, "members")
        if "second_factor" in request.POST:
            wanted = request.POST["second_factor"] == "required"
            require_second_factor(its, wanted, actor_of(request))
            return _back("team", its)
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
        "quotas": [one for one in used_by(its) if one.limit is not None],
    }
    return render(request, "accounts/team.html", context, status=422 if given.is_bound else 200)


def _back(page: str, its: Team) -> HttpResponse:
    return redirect(f"{reverse(page)}?{CHOSEN_TEAM}={its.slug}")


PAGES = (
    Page(route="settings/members/", view=members, name="members", needs={"POST": "members"}),
    Page(
        route="settings/members/<int:member_id>/role/",
        view=change_role,
        name="member_role",
        needs={"POST": "members"},
    ),
    Page(
        route="settings/members/<int:member_id>/remove/",
        view=remove,
        name="member_remove",
        needs={"POST": "members"},
    ),
    Page(
        route="settings/members/<int:member_id>/link/",
        view=link,
        name="member_link",
        needs={"POST": "members"},
    ),
    Page(
        route="settings/members/invitations/<int:invitation_id>/withdraw/",
        view=withdraw,
        name="invitation_withdraw",
        needs={"POST": "members"},
    ),
    Page(route="settings/team/", view=team, name="team", needs={"POST": "members"}),
)
