"""Teams, memberships with their roles and rights, and invitations."""

from __future__ import annotations

import uuid
from typing import Literal, get_args

from django.conf import settings
from django.db import models

Right = Literal["read", "review", "reveal", "write", "accept", "keys", "audit", "members", "erase"]
"""Something a member may be allowed to do.

`read`: everything except the audit log. `review`: judge summaries, leave notes on
steps. `reveal`: see a block without masks where the team shows content masked. `write`: import,
pin, undo, draft, simulate and propose policies. `accept`: start and roll
back a proposed policy. `keys`: create and revoke keys. `audit`: read the audit log. `members`:
invite, change roles, remove members and rename the team. `erase`: erase for good, set retention,
hold, and say what is masked.
"""
RIGHTS: tuple[Right, ...] = get_args(Right)


class Team(models.Model):
    """The owner of sessions; teams cannot see each other's data.

    `active` is the policy version for new sessions that name no policy; null if the team never
    chose one, then the DEFAULT_POLICY setting applies.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=50, unique=True)
    active = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    require_second_factor = models.BooleanField(
        default=False,
        db_default=False,
        help_text="members without one set it up before anything else",
    )
    show_masked = models.BooleanField(
        default=False,
        db_default=False,
        help_text="members and keys that only read see content masked",
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
    by_sign_on = models.BooleanField(
        default=False, help_text="given by single sign-on, which changes and ends it"
    )
    vouched = models.DateTimeField(
        null=True, help_text="when single sign-on last gave it; null if it does not"
    )
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
    Membership.Role.REVIEWER: ("read", "review", "reveal"),
    Membership.Role.VIEWER: ("read",),
}
"""The rights of each role; the only table of them."""


def may(user: int | None, team: Team, right: Right) -> bool:
    """Check whether a user (primary key) is a member of the team with a role that includes the
    right."""
    found = Membership.objects.filter(user=user, team=team).first()
    return found is not None and found.may(right)


class Invitation(models.Model):
    """The offer of a role in a team; grants nothing until it is accepted.

    Its URL carries a token that is shown once; only the SHA-256 is stored. It ends when accepted,
    withdrawn, or at `expires`.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=8, choices=Membership.Role.choices)
    email = models.EmailField(blank=True, help_text="intended recipient; no mail is sent")
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
        return f"{self.role} of {self.team_id} for {self.email or 'anyone with the link'}"
