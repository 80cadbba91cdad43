"""The printed sign-in address: works once, for the local user, on a server for this machine."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.accounts.logins import has_passwords
from sessions.actions.accounts.sign_ins import note_sign_in
from sessions.actions.accounts.teams import has_account, local_team, local_user
from sessions.models import LoginAddress
from sessions.models.record.blobs import sha256

VALID = timedelta(days=1)


def why_off() -> str:
    """Why the printed address does not sign in; empty if it does."""
    if settings.PUBLIC:
        return f"others can reach this server ({settings.PUBLIC})"
    return "an account with a password exists" if has_passwords() else ""


def may_sign_in(user: User) -> bool:
    """Whether a person can sign in: the local user without a password only by an address."""
    return user.is_active and (has_account(user) or not why_off())


@transaction.atomic
def renew_address() -> str:
    """Make a token for a new address, and end the previous one. It is not stored."""
    token = secrets.token_urlsafe(32)
    LoginAddress.objects.all().delete()
    LoginAddress.objects.create(digest=sha256(token.encode()), expires=timezone.now() + VALID)
    audit.note(local_team(), audit.COMMAND, "login.printed")
    return token


def is_usable(token: str) -> bool:
    """Whether an address with that token would sign in now."""
    return not why_off() and _usable(token).exists()


@transaction.atomic
def use_address(token: str, ip: str) -> User | None:
    """Use up an address and return the local user; None if it is not usable."""
    if why_off():
        return None
    used, _ = _usable(token).delete()  # of two requests at once, one deletes the row
    if not used:
        return None
    person = local_user()
    note_sign_in(person, ip, "printed address")
    return person


def _usable(token: str) -> QuerySet[LoginAddress]:
    digest = sha256(token.encode(errors="replace"))
    return LoginAddress.objects.filter(digest=digest, expires__gt=timezone.now())
