"""Membership changes: role changes, leaving and removal. Every team keeps at least one owner."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.accounts.keys import keys_of, revoke_key, take_over
from sessions.actions.accounts.teams import has_account
from sessions.models import Invitation, Membership, Team
from sessions.signals import members_changed

OWNER = Membership.Role.OWNER


class LastOwner(ValueError):
    """The change would leave the team without an owner."""

    def __init__(self) -> None:
        super().__init__("A team needs an owner. Make another member an owner first.")


@transaction.atomic
def change_role(membership: Membership, role: str, actor: audit.Actor) -> int:
    """Change a member's role; return how many of their keys ended by it. Raises LastOwner."""
    member = _held(membership)
    if member is None or member.role == role:
        return 0
    keep_an_owner(member)
    before, member.role = member.role, role
    member.save(update_fields=["role"])
    _withdraw_theirs(member)
    members_changed.send(Membership, team=member.team)
    audit.note(member.team, actor, "role.changed", member.user, before=before, role=role)
    return 0 if member.may("keys") else _end_keys(member, actor)


@transaction.atomic
def remove(membership: Membership, actor: audit.Actor, *, take_keys: bool = False) -> None:
    """Remove a member from the team; their work stays, and their keys end unless the actor takes
    them over. Raises LastOwner."""
    if take_keys and actor.user is not None:
        for key in keys_of(membership.team, membership.user):
            take_over(key, actor.user, actor)
    _end(membership, actor, "member.removed")


@transaction.atomic
def leave(membership: Membership, actor: audit.Actor) -> None:
    """Leave a team; the person's keys end. Raises LastOwner."""
    _end(membership, actor, "member.left")


def _end(membership: Membership, actor: audit.Actor, action: str) -> None:
    member = _held(membership)
    if member is None:
        return
    keep_an_owner(member)
    member.delete()
    _withdraw_theirs(member)
    members_changed.send(Membership, team=member.team)
    audit.note(member.team, actor, action, member.user, role=member.role)
    _end_keys(member, actor)


def _end_keys(member: Membership, actor: audit.Actor) -> int:
    return sum(revoke_key(key, actor) for key in keys_of(member.team, member.user))


def _held(membership: Membership) -> Membership | None:
    """Reload the membership with the team locked, so that two owners cannot leave at once."""
    Team.objects.select_for_update(no_key=True).get(pk=membership.team_id)
    rows = Membership.objects.select_related("team", "user")
    return rows.filter(pk=membership.pk).first()


def keep_an_owner(member: Membership) -> None:
    """Raise LastOwner if no owner with a way in of their own would stay: the local user, an
    owner of teams that the operator made, has none."""
    others = Membership.objects.filter(team=member.team, role=OWNER, user__is_active=True)
    rows = others.exclude(pk=member.pk).select_related("user")
    if member.role == OWNER and not any(has_account(row.user) for row in rows):
        raise LastOwner


def _withdraw_theirs(member: Membership) -> None:
    """Withdraw open invitations of a member who may no longer invite."""
    if member.pk is not None and member.may("members"):
        return
    Invitation.objects.filter(
        team=member.team, invited_by=member.user, accepted=None, withdrawn=None
    ).update(withdrawn=timezone.now())
