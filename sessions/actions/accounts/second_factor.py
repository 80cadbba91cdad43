"""Second factors: who must set one up, and their end by an operator."""

from __future__ import annotations

from collections.abc import Iterable

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from sessions.actions.accounts import audit
from sessions.models import Membership, Team
from sessions.models.web.statements import Statement, given_int


def _owing() -> QuerySet[Membership]:
    """Memberships whose team requires a second factor that the person does not have. Those given
    by single sign-on have that of the provider."""
    rows = Membership.objects.filter(team__require_second_factor=True, by_sign_on=False)
    return rows.exclude(user__authenticator__type=Authenticator.Type.TOTP)


_OWES = Statement(lambda: _owing().filter(user_id=given_int("user")).values_list("pk")[:1])


def must_set_up(user: int | None) -> bool:
    """Whether a person (primary key) must set up a second factor before anything else."""
    return user is not None and bool(_OWES.rows(user=user))


def owing_among(users: Iterable[int]) -> set[int]:
    """Those of these people (primary keys) who must set one up."""
    return set(_owing().filter(user__in=set(users)).values_list("user_id", flat=True))


def is_required(user: User) -> bool:
    """Whether a team of the person requires one."""
    rows = Membership.objects.filter(user=user, by_sign_on=False)
    return rows.filter(team__require_second_factor=True).exists()


@transaction.atomic
def require_second_factor(team: Team, required: bool, actor: audit.Actor) -> None:
    """Have all members of a team set up a second factor before anything else, or no longer."""
    if team.require_second_factor != required:
        team.require_second_factor = required
        team.save(update_fields=["require_second_factor"])
        audit.note(team, actor, "second_factor.required" if required else "second_factor.waived")


@transaction.atomic
def remove_second_factor(user: User, actor: audit.Actor) -> bool:
    """Remove a person's second factor and recovery codes. Returns False if there was none."""
    removed, _ = Authenticator.objects.filter(user=user).delete()
    if removed:
        audit.note_for(user, actor, "second_factor.removed", user)
    return bool(removed)
