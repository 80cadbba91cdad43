"""Signing in by name or e-mail and password, and how often one may try."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.crypto import salted_hmac

from sessions.models import LoginFailure

WINDOW = timedelta(minutes=15)
PER_NAME, PER_ADDRESS = 10, 30
"""Failures within WINDOW after which a name, or an address, has to wait."""


class TooMany(Exception):
    """Too many attempts failed; `until` is when the next one is heard."""

    def __init__(self, until: datetime) -> None:
        super().__init__("too many attempts")
        self.until = until


def person_of(name: str, password: str, ip: str) -> User | None:
    """Who signs in with that name or e-mail and password; None for whoever cannot.

    Unknown names take as long as known ones (Django hashes all the same), and wait as well.
    Raises TooMany.
    """
    marked = salted_hmac("contextlab.login", name.casefold(), algorithm="sha256").hexdigest()
    # Counted before it is known how it ends: many at once must not slip through.
    attempt = LoginFailure.objects.create(name=marked, ip=ip)
    since = timezone.now() - WINDOW
    LoginFailure.objects.filter(at__lt=since).delete()
    earlier = LoginFailure.objects.filter(at__gte=since, pk__lt=attempt.pk).order_by("-at")
    for rows, most in (
        (earlier.filter(name=marked), PER_NAME),
        (earlier.filter(ip=ip), PER_ADDRESS),
    ):
        last = rows[most - 1 : most].first()
        if last is not None:
            attempt.delete()  # or whoever goes on trying would never be heard again
            raise TooMany(last.at + WINDOW)
    found = authenticate(username=_username(name), password=password)
    if not isinstance(found, User):
        return None
    LoginFailure.objects.filter(name=marked, ip=ip).delete()
    return found


def _username(typed: str) -> str:
    """The name of the account that is meant: by its name, else by an e-mail that only it has."""
    for field in ("username", "username__iexact", "email__iexact"):
        rows = list(User.objects.filter(**{field: typed}).values_list("username", flat=True)[:2])
        if len(rows) == 1:
            return rows[0]
    return typed


def has_passwords() -> bool:
    """Whether there is an account that one can sign in to by a password."""
    unusable = "!"  # Django's prefix of what no password matches
    people = User.objects.filter(is_active=True).exclude(password__startswith=unusable)
    return people.exclude(password="").exists()
