"""The page that says why something is not allowed: one's role, those it takes, who gives them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sessions.api.access import NotAllowed
from sessions.models import Membership
from sessions.models.teams import ROLE_MAY, Right

DEEDS: dict[Right, str] = {
    "read": "look at this",
    "review": "judge compactions",
    "write": "import, pin, undo, draft, simulate or propose",
    "accept": "let a proposed policy go out, or take it back",
    "keys": "make or revoke keys",
    "audit": "read the audit log",
    "members": "invite, change roles, remove members or rename the team",
}
"""What each right is for, after "to"."""


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with what is known of the refusal."""
    context = _known(request, exception) if isinstance(exception, NotAllowed) else {}
    return render(request, "403.html", context, status=403)


def _known(request: HttpRequest, refusal: NotAllowed) -> dict[str, object]:
    members = Membership.objects.filter(team=refusal.team)
    own = members.filter(user=request.user.pk).first()
    if own is None:
        return {}
    owners = members.filter(role=Membership.Role.OWNER, user__is_active=True)
    return {
        "role": own.role,
        "team": refusal.team,
        "deed": DEEDS[refusal.right],
        "roles": [role for role, rights in ROLE_MAY.items() if refusal.right in rights],
        "owners": list(owners.order_by("user__username").values_list("user__username", flat=True)),
    }
