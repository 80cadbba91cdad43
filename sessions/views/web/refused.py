"""The 403 page: the user's role, the roles required, and the team's owners. And the 404 page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.defaults import page_not_found

from sessions.access import NotAllowed, note_missed, note_refused
from sessions.actions.accounts.addresses import may_sign_in
from sessions.actions.archives.unpack import Unpacking
from sessions.models import Membership
from sessions.models.accounts.teams import ROLE_MAY, Right
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.values import ContentErased

DEEDS: dict[Right, str] = {
    "read": "look at this",
    "review": "review compactions",
    "reveal": "see content without its masks",
    "write": "import, pin, undo, draft, simulate or propose",
    "accept": "start or roll back a rollout",
    "keys": "create or revoke keys",
    "audit": "read the audit log",
    "members": "invite, change roles, remove members or rename the team",
    "erase": "erase data, set retention, or hold data",
}
"""What each right allows, to complete "to …"."""
MASKING_DEED = "set masking rules, or what is shown masked"
"""What the right to erase allows under Settings, Masking."""


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render a 403 page with what is known about the refusal."""
    context: dict[str, object] = {}
    if isinstance(exception, NotAllowed):
        note_refused(request, exception)
        context = _known(request, exception)
    return render(request, "403.html", context, status=403)


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Render the 404 page, identical for missing objects and those of other teams; or a 410 page
    that says that a session of the team, or its content, was erased; or a 503 page that comes
    back while a session is unpacked."""
    if isinstance(exception, SessionErased | ContentErased):
        return render(request, "404.html", {"erased": str(exception)}, status=410)
    if isinstance(exception, Unpacking):
        context = {"unpacking": str(exception)}
        answer = render(request, "404.html", context, status=503)
        answer.headers["Refresh"] = "2"
        answer.headers["Retry-After"] = str(exception.seconds)
        return answer
    note_missed(request)
    return page_not_found(request, exception)


def _known(request: HttpRequest, refusal: NotAllowed) -> dict[str, object]:
    members = Membership.objects.filter(team=refusal.team)
    own = members.filter(user=request.user.pk).first()
    if own is None:
        return {}
    match = request.resolver_match
    masking = match is not None and (match.view_name or "").startswith("masking")
    owners = members.filter(role=Membership.Role.OWNER).select_related("user")
    return {
        "role": own.role,
        "team": refusal.team,
        "deed": MASKING_DEED if masking else DEEDS[refusal.right],
        "roles": [role for role, rights in ROLE_MAY.items() if refusal.right in rights],
        "owners": [
            row.user.username for row in owners.order_by("user__username") if may_sign_in(row.user)
        ],
    }
