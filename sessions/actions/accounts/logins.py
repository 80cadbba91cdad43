"""Sign-in by name or email and password, with rate limits."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.crypto import salted_hmac

from sessions.models import LoginFailure

WINDOW = timedelta(minutes=15)
PER_NAME, PER_ADDRESS = 10, 30
"""Failures within WINDOW after which a user name, or an IP address, has to wait."""


class TooMany(Exception):
    """Too many failed attempts; the next is allowed at `until`."""

    def __init__(self, until: datetime) -> None:
        super().__init__("too many attempts")
        self.until = until


def person_of(name: str, password: str, ip: str) -> User | None:
    """Authenticate a user by name or email and password; None if the credentials are wrong.

    Unknown names take as long as known ones (Django hashes either way) and are rate-limited too.
    Raises TooMany.
    """
    marked = salted_hmac("contextlab.login", name.casefold(), algorithm="sha256").hexdigest()
    # Count the attempt before its result is known, so that many parallel attempts cannot slip
    # through.
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
            attempt.delete()  # otherwise every further attempt would extend the wait
            raise TooMany(last.at + WINDOW)
    found = authenticate(username=_username(name), password=password)
    if not isinstance(found, User):
        return None
    LoginFailure.objects.filter(name=marked, ip=ip).delete()
    return found


def _username(typed: str) -> str:
    """The name of the account meant: by user name, else by an email address that only it has."""
    for field in ("username", "username__iexact", "email__iexact"):
        rows = list(User.objects.filter(**{field: typed}).values_list("username", flat=True)[:2])
        if len(rows) == 1:
            return rows[0]
    return typed


def has_passwords() -> bool:
    """Whether any account can sign in with a password."""
    unusable = "!"  # Django's prefix of unusable passwords
    people = User.objects.filter(is_active=True).exclude(password__startswith=unusable)
    return people.exclude(password="").exists()
