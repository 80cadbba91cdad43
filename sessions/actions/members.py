"""Members of a team: their roles change, they leave, they are removed; one owner always stays."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from sessions.actions import audit, reviews
from sessions.models import Invitation, Membership, Team

OWNER = Membership.Role.OWNER


class LastOwner(ValueError):
    """The team would have no owner, as a sentence."""

    def __init__(self) -> None:
        super().__init__("A team needs an owner. Make somebody else one first.")


@transaction.atomic
def change_role(membership: Membership, role: str, actor: audit.Actor) -> None:
    """Give a member another role. Raises LastOwner."""
    member = _held(membership)
    if member is None or member.role == role:
        return
    _keep_an_owner(member)
    before, member.role = member.role, role
    member.save(update_fields=["role"])
    _withdraw_theirs(member)
    reviews.want_no_more_than_can(member.team)
    name = member.user.get_username()
    audit.note(member.team, actor, "role.changed", name, before=before, role=role)


@transaction.atomic
def remove(membership: Membership, actor: audit.Actor) -> None:
    """Take a member out of the team; what he made stays. Raises LastOwner."""
    _end(membership, actor, "member.removed")


@transaction.atomic
def leave(membership: Membership, actor: audit.Actor) -> None:
    """Go out of a team of one's own will. Raises LastOwner."""
    _end(membership, actor, "member.left")


def _end(membership: Membership, actor: audit.Actor, action: str) -> None:
    member = _held(membership)
    if member is None:
        return
    _keep_an_owner(member)
    member.delete()
    _withdraw_theirs(member)
    reviews.want_no_more_than_can(member.team)
    audit.note(member.team, actor, action, member.user.get_username(), role=member.role)


def _held(membership: Membership) -> Membership | None:
    """The row as it is now, with the team locked: of two owners who go at once one stays."""
    Team.objects.select_for_update().get(pk=membership.team_id)
    rows = Membership.objects.select_related("team", "user")
    return rows.filter(pk=membership.pk).first()


def _keep_an_owner(member: Membership) -> None:
    others = Membership.objects.filter(team=member.team, role=OWNER, user__is_active=True)
    if member.role == OWNER and not others.exclude(pk=member.pk).exists():
        raise LastOwner


def _withdraw_theirs(member: Membership) -> None:
    """Who may no longer invite has nobody come in by an invitation that lies about."""
    if member.pk is not None and member.may("members"):
        return
    Invitation.objects.filter(
        team=member.team, invited_by=member.user, accepted=None, withdrawn=None
    ).update(withdrawn=timezone.now())
