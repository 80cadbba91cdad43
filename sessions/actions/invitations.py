"""Invitations: the offer of a role in a team, as an address that works once."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions.actions import audit
from sessions.models import Invitation, Membership, Team
from sessions.models.blobs import sha256

VALID = timedelta(days=7)


class NotUsable(Exception):
    """The invitation was used, withdrawn, has expired, or never was."""


class AlreadyMember(Exception):
    """Whoever accepts is in the team; `membership` says as what."""

    def __init__(self, membership: Membership) -> None:
        super().__init__("already a member")
        self.membership = membership


@transaction.atomic
def invite(team: Team, role: str, actor: audit.Actor, email: str = "") -> tuple[Invitation, str]:
    """An invitation into a team, and the token of its address, which cannot be had again."""
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
    """Those that can still be accepted."""
    now = timezone.now()
    return Invitation.objects.filter(accepted=None, withdrawn=None, expires__gt=now)


def by_token(token: str) -> Invitation | None:
    """The invitation of that token, whatever became of it."""
    rows = Invitation.objects.select_related("team", "invited_by")
    return rows.filter(digest=sha256(token.encode())).first()


@transaction.atomic
def withdraw(invitation: Invitation, actor: audit.Actor) -> bool:
    """End an invitation; False where it had ended."""
    ended = waiting().filter(pk=invitation.pk).update(withdrawn=timezone.now())
    if ended:
        named = invitation.email or f"invitation {invitation.pk}"
        audit.note(invitation.team, actor, "invitation.withdrawn", named, role=invitation.role)
    return bool(ended)


def accept(invitation: Invitation, user: User, actor: audit.Actor) -> Membership:
    """Let the person in with the role that was offered; the invitation is used up.

    Raises AlreadyMember, which changes nothing, and NotUsable.
    """
    try:
        with transaction.atomic():
            # First, since it locks the row: of two who come at once one finds it used.
            taken = waiting().filter(pk=invitation.pk)
            if not taken.update(accepted=timezone.now(), accepted_by=user):
                raise NotUsable
            made = Membership.objects.create(user=user, team=invitation.team, role=invitation.role)
            audit.note(invitation.team, actor, "member.joined", user.get_username(), role=made.role)
            return made
    except (IntegrityError, NotUsable):
        known = Membership.objects.filter(user=user, team=invitation.team).first()
        if known is None:
            raise NotUsable from None
        raise AlreadyMember(known) from None
