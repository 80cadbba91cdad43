"""Teams, who is in them and may do what, and who is asked to join."""

from __future__ import annotations

import uuid
from typing import Literal, get_args

from django.conf import settings
from django.db import models

Right = Literal["read", "review", "write", "accept", "keys", "audit", "members"]
"""What a member may be allowed to do.

`read` looks at everything but the audit log; `review` judges summaries; `write` imports, pins,
undoes, drafts, simulates and proposes policies; `accept` lets a proposed policy go out, and takes
it back; `keys` makes and revokes keys; `audit` reads the audit log; `members` invites, changes
roles, removes, and renames the team.
"""
RIGHTS: tuple[Right, ...] = get_args(Right)


class Team(models.Model):
    """Owns sessions; nothing of one team can be seen from another.

    `active` is what new sessions begin with that name no policy; null where the team never chose,
    then the setting DEFAULT_POLICY does.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=50, unique=True)
    active = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """One user's role in one team."""

    class Role(models.TextChoices):
        OWNER = "owner"
        EDITOR = "editor"
        REVIEWER = "reviewer"
        VIEWER = "viewer"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.VIEWER)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "team"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.role} of {self.team_id}"

    def may(self, right: Right) -> bool:
        """Whether the role holds the right."""
        return right in ROLE_MAY[self.role]


ROLE_MAY: dict[str, tuple[Right, ...]] = {
    Membership.Role.OWNER: RIGHTS,
    Membership.Role.EDITOR: ("read", "review", "write", "accept", "keys", "audit"),
    Membership.Role.REVIEWER: ("read", "review"),
    Membership.Role.VIEWER: ("read",),
}
"""The rights of each role; the only table of them."""


def may(user: int | None, team: Team, right: Right) -> bool:
    """Whether the user of that key is a member of the team whose role holds the right."""
    found = Membership.objects.filter(user=user, team=team).first()
    return found is not None and found.may(right)


class Invitation(models.Model):
    """The offer of a role in a team; grants nothing before it is accepted.

    Its address carries a token, shown once; stored is the SHA-256. It ends by being accepted,
    withdrawn, or at `expires`.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=8, choices=Membership.Role.choices)
    email = models.EmailField(blank=True, help_text="whom it is meant for; no mail is sent")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    accepted = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    withdrawn = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.role} of {self.team_id} for {self.email or 'somebody'}"
