"""Sign-in by name or email and password, with rate limits that cannot lock others out.

Failures count for a name together with their source: an address, or a browser in which that account
has signed in before. Attempts from elsewhere cannot use up those of such a browser.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from sessions.actions.accounts.sign_ins import note_failure
from sessions.actions.accounts.sign_on import signs_on
from sessions.models import LoginFailure

WINDOW = timedelta(minutes=15)
PER_NAME_AND_SOURCE, PER_ADDRESS, PER_NAME = 10, 30, 100
"""Failures within WINDOW after which the next attempt has to wait. PER_NAME counts all addresses,
and limits only browsers in which the account has not signed in before."""
KNOWN_FOR = timedelta(days=365)
_SALT = "contextlab.known-browser"


class TooMany(Exception):
    """Too many failed attempts; the next is allowed at `until`."""

    def __init__(self, until: datetime) -> None:
        super().__init__("too many attempts")
        self.until = until


class KnownBrowser(NamedTuple):
    """A browser in which the account with the marked name has signed in before."""

    id: str
    name: str


def remember(user: User) -> str:
    """A cookie for a browser in which this user has just signed in."""
    return signing.dumps([secrets.token_hex(8), _marked(user.get_username())], salt=_SALT)


def known_browser(cookie: str) -> KnownBrowser | None:
    """The browser with that cookie; None if it is not ours or too old."""
    try:
        return KnownBrowser(*signing.loads(cookie, salt=_SALT, max_age=KNOWN_FOR))
    except (signing.BadSignature, TypeError):
        return None


def own_browser(user: User) -> KnownBrowser:
    """The browser of a user who is signed in and asked for the password again."""
    return KnownBrowser(f"account {user.pk}", _marked(user.get_username()))


def person_of(
    name: str, password: str, ip: str, browser: KnownBrowser | None = None
) -> User | None:
    """Authenticate a user by name or email and password; None if the credentials are wrong, or
    single sign-on gave the person access.

    Unknown names take as long as known ones (Django hashes either way) and are rate-limited too.
    A wrong password is noted in the audit log. Raises TooMany.
    """
    username = _username(name)
    marked = _marked(username)
    known = browser is not None and browser.name == marked
    source = browser.id if browser is not None and known else _network(ip)
    # Count the attempt before its result is known, so that many parallel attempts cannot slip
    # through.
    attempt = LoginFailure.objects.create(name=marked, source=source)
    _check_limits(attempt, known=known)
    found = authenticate(username=username, password=password)
    if not isinstance(found, User) or signs_on(found):
        note_failure(User.objects.filter(username=username).first(), ip, "password")
        return None
    LoginFailure.objects.filter(name=marked, source=source).delete()
    return found


def _check_limits(attempt: LoginFailure, *, known: bool) -> None:
    since = timezone.now() - WINDOW
    LoginFailure.objects.filter(at__lt=since).delete()
    earlier = LoginFailure.objects.filter(at__gte=since, pk__lt=attempt.pk).order_by("-at")
    limits: list[tuple[QuerySet[LoginFailure], int]] = [
        (earlier.filter(name=attempt.name, source=attempt.source), PER_NAME_AND_SOURCE)
    ]
    if not known:
        limits += [
            (earlier.filter(source=attempt.source), PER_ADDRESS),
            (earlier.filter(name=attempt.name), PER_NAME),
        ]
    for rows, most in limits:
        last = rows[most - 1 : most].first()
        if last is not None:
            attempt.delete()  # otherwise every further attempt would extend the wait
            raise TooMany(last.at + WINDOW)


def _marked(name: str) -> str:
    return salted_hmac("contextlab.login", name.casefold(), algorithm="sha256").hexdigest()


def _network(ip: str) -> str:
    """Return an address; for IPv6 its /64 network, which belongs to one customer."""
    try:
        address = ip_address(ip)
    except ValueError:
        return ip
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))
    return ip


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
