"""Single sign-on: the accounts and memberships that a provider's claims give, change and end."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone

from sessions.actions.accounts import audit, members
from sessions.actions.accounts.accounts import check_email, check_name
from sessions.actions.accounts.emails import store_email
from sessions.actions.accounts.teams import team_called
from sessions.models import Membership, Team

NAME_CHARS = 150


class NotAdmitted(Exception):
    """Why a person may not sign in, as a sentence."""


def admit(user: User | None, claims: Mapping[str, Any], ip: str) -> User:
    """Bring a person's memberships in line with the claims; make the account if it is new.

    Raises NotAdmitted if the claims give no role and no other membership is left. Access that the
    claims no longer give has ended then.
    """
    if user is not None and not user.is_active:
        raise NotAdmitted("Your account is disabled. Ask an owner of your team.")
    roles = roles_of(claims)
    with transaction.atomic():
        if user is None and roles:
            user = _new_account(claims)
        if user is not None:
            _align(user, roles, audit.person(user, ip))
            if Membership.objects.filter(user=user).exists():
                return user
            # Another unusable password ends all browser sessions of the person, and their sockets.
            user.set_unusable_password()
            user.save(update_fields=["password"])
    raise NotAdmitted(
        "Your account there is in no group or domain with access to this server. Ask an operator "
        "to add you."
    )


def roles_of(claims: Mapping[str, Any]) -> dict[str, str]:
    """The role that claims give, by team: of several, the one that may most.

    Only a verified email address counts. Groups may be one text or a list.
    """
    given = settings.SIGN_ON
    assert given is not None
    groups = claims.get(given.claim) or []
    groups = [groups] if isinstance(groups, str) else groups
    found = [given.groups.get(str(one)) for one in groups]
    found.append(given.domains.get(_verified_email(claims).rpartition("@")[2].casefold()))
    roles: dict[str, str] = {}
    for team, role in filter(None, found):
        roles[team] = max(roles.get(team, role), role, key=_RANK.index)
    return roles


_RANK = ("viewer", "reviewer", "editor", "owner")


def _align(user: User, roles: Mapping[str, str], actor: audit.Actor) -> None:
    """Give, change and end the memberships that single sign-on gives; others stay, and so does the
    last owner of a team."""
    wanted = {_team(name): role for name, role in roles.items()}
    held = {row.team: row for row in Membership.objects.filter(user=user).select_related("team")}
    for team, row in held.items():
        if not row.by_sign_on:
            continue
        try:
            if team not in wanted:
                members.remove(row, actor)
            elif row.role != wanted[team]:
                members.change_role(row, wanted[team], actor)
        except members.LastOwner:
            said = wanted.get(team, "none")
            audit.note(team, actor, "owner.kept", user, role=said, how="single sign-on")
    now = timezone.now()
    rows = Membership.objects.filter(user=user, by_sign_on=True, team__in=list(wanted))
    rows.update(vouched=now)  # not of an owner who only stays as the last: their keys lapse
    for team, role in wanted.items():
        if team not in held:
            Membership.objects.create(user=user, team=team, role=role, by_sign_on=True, vouched=now)
            audit.note(team, actor, "member.joined", user, role=role, how="single sign-on")


def _team(name: str) -> Team:
    return Team.objects.filter(slug=name).first() or team_called(name)[0]


def _new_account(claims: Mapping[str, Any]) -> User:
    """An account without a password. Its email address is set only if it is verified and no other
    account has it: two accounts with one address could not sign in by it."""
    email = _verified_email(claims)
    try:
        validate_email(email)
        check_email(email)
    except ValidationError:
        email = ""
    wanted = claims.get("preferred_username") or claims.get("email") or claims.get("name")
    user = User.objects.create(username=_free_name(str(wanted or "")), password=make_password(None))
    store_email(user, email, verified=True)
    return user


def _verified_email(claims: Mapping[str, Any]) -> str:
    """The email address, empty unless the provider verified it."""
    email = str(claims.get("email") or "")
    return email if "@" in email and claims.get("email_verified") in (True, "true") else ""


def signs_on(user: User) -> bool:
    """Whether single sign-on gave a person access: then no password may, because only the provider
    can end it."""
    return Membership.objects.filter(user=user, by_sign_on=True).exists()


def _free_name(wanted: str) -> str:
    """A free user name like the one wanted."""
    name = re.sub(r"[^\w.+-]+", "-", wanted.partition("@")[0]).strip("-.")[: NAME_CHARS - 10]
    while True:
        try:
            return check_name(name or "member")
        except ValidationError:
            name = f"{name[: NAME_CHARS - 10] or 'member'}-{secrets.token_hex(2)}"
