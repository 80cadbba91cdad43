"""Who is meant by what was typed into a sign-in form, and from where."""

from __future__ import annotations

import secrets
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from django.contrib.auth.models import User
from django.core import signing
from django.utils.crypto import salted_hmac

KNOWN_FOR = timedelta(days=365)
_SALT = "contextlab.known-browser"


class KnownBrowser(NamedTuple):
    """A browser in which the account with the marked name has signed in before."""

    id: str
    name: str


def remember(user: User) -> str:
    """A cookie for a browser in which this user has just signed in."""
    return signing.dumps([secrets.token_hex(8), _marked(user.get_username())], salt=_SALT)


def known_browser(cookie: str, username: str) -> str:
    """The id of the browser with that cookie; empty if it is not ours, too old or of another
    account."""
    try:
        found = KnownBrowser(*signing.loads(cookie, salt=_SALT, max_age=KNOWN_FOR))
    except (signing.BadSignature, TypeError):
        return ""
    return found.id if found.name == _marked(username) else ""


def _marked(name: str) -> str:
    return salted_hmac("contextlab.login", name.casefold(), algorithm="sha256").hexdigest()


def network(ip: str) -> str:
    """Return an address; for IPv6 its /64 network, which belongs to one customer, and for none
    0.0.0.0."""
    try:
        address = ip_address(ip)
    except ValueError:
        return "0.0.0.0"  # noqa: S104
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> 64 << 64))
    return ip


def username_of(typed: str) -> str:
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
