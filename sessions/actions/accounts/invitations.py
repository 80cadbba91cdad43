"""Invitations: the offer of a role in a team, as a single-use URL."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import has_account
from sessions.models import Invitation, Membership, Team
from sessions.models.record.blobs import sha256

VALID = timedelta(days=7)


class NotUsable(Exception):
    """The invitation was used or withdrawn, has expired, or does not exist."""


class AlreadyMember(Exception):
    """The person accepting is already in the team, as `membership`."""

    def __init__(self, membership: Membership) -> None:
        super().__init__("already a member")
        self.membership = membership


def usual_role(team: Team) -> Membership.Role:
    """The role that an invitation offers unless another is chosen: editor, and owner for the first
    account of a team."""
    owners = Membership.objects.filter(team=team, role=Membership.Role.OWNER, user__is_active=True)
    owned = any(has_account(row.user) for row in owners.select_related("user"))
    return Membership.Role.EDITOR if owned else Membership.Role.OWNER


@transaction.atomic
def invite(team: Team, role: str, actor: audit.Actor, email: str = "") -> tuple[Invitation, str]:
    """Create an invitation; return it with its URL token, which is not stored."""
    token = secrets.token_urlsafe(32)
    made = Invitation.objects.create(
        team=team,
        role=role,
        email=email,
        digest=sha256(token.encode()),
        invited_by=actor.user,
        expires=timezone.now() + VALID,
    )
    audit.note(team, actor, "member.invited", email or f"invitation {made.pk}", role=role)
    return made, token


def waiting() -> QuerySet[Invitation]:
    """Invitations that can still be accepted."""
    now = timezone.now()
    return Invitation.objects.filter(accepted=None, withdrawn=None, expires__gt=now)


def by_token(token: str) -> Invitation | None:
    """Look up an invitation by token, whatever its state."""
    rows = Invitation.objects.select_related("team", "invited_by")
    return rows.filter(digest=sha256(token.encode())).first()


@transaction.atomic
def withdraw(invitation: Invitation, actor: audit.Actor) -> bool:
    """End an invitation. Returns False if it had already ended."""
    ended = waiting().filter(pk=invitation.pk).update(withdrawn=timezone.now())
    if ended:
        named = invitation.email or f"invitation {invitation.pk}"
        audit.note(invitation.team, actor, "invitation.withdrawn", named, role=invitation.role)
    return bool(ended)


def accept(invitation: Invitation, user: User, actor: audit.Actor) -> Membership:
    """Add the person to the team with the offered role, and use up the invitation.

    Raises AlreadyMember, which leaves the invitation usable, and NotUsable.
    """
    try:
        with transaction.atomic():
            # First, because it locks the row: of two concurrent attempts, the second finds it used.
            taken = waiting().filter(pk=invitation.pk)
            if not taken.update(accepted=timezone.now(), accepted_by=user):
                raise NotUsable
            made = Membership.objects.create(user=user, team=invitation.team, role=invitation.role)
            audit.note(invitation.team, actor, "member.joined", user, role=made.role)
            return made
    except (IntegrityError, NotUsable):
        known = Membership.objects.filter(user=user, team=invitation.team).first()
        if known is None:
            raise NotUsable from None
        raise AlreadyMember(known) from None
