"""API keys: create, check on each request, revoke.

A token is `clk_`, 8 characters that identify the key, 32 secret characters and a checksum of 6, all
base 62. Only its SHA-256 is stored: 190 random bits need no slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.models import Key, Team
from sessions.models.accounts.teams import Right
from sessions.models.web.statements import Statement, given_text

SCOPES = ("read", "write")
"""`read` allows GET requests, `write` also changes; a key that can write can also read."""

ERASE: Right = "erase"
"""The scope of a key that may erase for good; only commands create one."""

_PREFIX, _SECRET, _CHECKSUM = 8, 32, 6
_LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_TOKEN = re.compile(rf"clk_([0-9A-Za-z]{{{_PREFIX + _SECRET}}})([0-9A-Za-z]{{{_CHECKSUM}}})")
_NO_DIGEST = "0" * 64
_USE_NOTED_EVERY = timedelta(minutes=1)
_VALID = Statement(
    lambda: (
        Key.objects.with_owner_role()
        .select_related("team")
        .filter(prefix=given_text("prefix"), revoked=None)
    )
)


@transaction.atomic
def create_key(
    team: Team,
    name: str = "",
    scopes: Sequence[str] = SCOPES,
    actor: audit.Actor = audit.COMMAND,
    *,
    owner: User | None = None,
    service: bool = False,
    expires: datetime | None = None,
) -> tuple[Key, str]:
    """Create a key, of the actor unless another owner is named or it is a service account, which
    belongs to the team; return it with its token, which is not stored. Raises ValueError."""
    if not scopes or not set(scopes) <= {*SCOPES, ERASE}:
        raise ValueError(f"Unknown key scope. Use one or more of: {', '.join((*SCOPES, ERASE))}.")
    granted = list(SCOPES) if {"write", ERASE} & set(scopes) else ["read"]
    granted += [ERASE] if ERASE in scopes else []
    while True:
        body = "".join(secrets.choice(_LETTERS) for _ in range(_PREFIX + _SECRET))
        if not Key.objects.filter(prefix=body[:_PREFIX]).exists():
            break
    token = f"clk_{body}{_checksum(body)}"
    key = Key.objects.create(
        team=team,
        prefix=body[:_PREFIX],
        digest=_digest(token),
        name=name,
        scopes=granted,
        owner=None if service else owner or actor.user,
        expires=expires,
    )
    audit.note(
        team,
        actor,
        "key.made",
        name or key.prefix,
        prefix=key.prefix,
        scopes=granted,
        **({"service_account": True} if key.owner is None else {}),
        **({"expires": expires.isoformat(timespec="seconds")} if expires else {}),
    )
    return key, token


def check_key(token: str) -> Key | None:
    """The key of a token, with its team; None if the token is malformed or unknown, or the key has
    ended."""
    found = _TOKEN.fullmatch(token)
    if found is None or _checksum(found[1]) != found[2]:
        return None
    prefix = found[1][:_PREFIX]
    key: Key | None = _VALID.first(prefix=prefix)
    # Compare even without a key, so that the response time does not reveal which prefixes exist.
    right = hmac.compare_digest(key.digest if key else _NO_DIGEST, _digest(token))
    if key is None or not right or key.why_ended(timezone.now()):
        return None
    _note_use(key)
    return key


@transaction.atomic
def revoke_key(key: Key, actor: audit.Actor = audit.COMMAND) -> bool:
    """Revoke a key immediately. Returns False if it already was; its row remains."""
    ended = Key.objects.filter(pk=key.pk, revoked=None).update(revoked=timezone.now())
    if ended:
        audit.note(key.team, actor, "key.revoked", key.name or key.prefix, prefix=key.prefix)
    return bool(ended)


@transaction.atomic
def take_over(key: Key, person: User, actor: audit.Actor) -> None:
    """Make a member who may create keys the owner of a key; it no longer ends with the former
    owner's membership."""
    before = key.owner.get_username() if key.owner else ""
    if Key.objects.filter(pk=key.pk, revoked=None).exclude(owner=person).update(owner=person):
        named = key.name or key.prefix
        audit.note(key.team, actor, "key.taken", named, prefix=key.prefix, before=before)


@transaction.atomic
def give_to_team(key: Key, actor: audit.Actor) -> None:
    """Make a key a service account: it belongs to the team, and stays when people leave."""
    before = key.owner.get_username() if key.owner else ""
    if Key.objects.filter(pk=key.pk, revoked=None).exclude(owner=None).update(owner=None):
        named = key.name or key.prefix
        audit.note(key.team, actor, "key.given", named, prefix=key.prefix, before=before)


def keys_of(team: Team, person: User) -> list[Key]:
    """The keys that end if that person leaves the team."""
    rows = Key.objects.filter(team=team, owner=person, revoked=None).select_related("team", "owner")
    return list(rows.order_by("created"))


def _note_use(key: Key) -> None:
    """Record the last use, at most once a minute: a write per request would make readers wait."""
    now = timezone.now()
    if key.used is None or key.used < now - _USE_NOTED_EVERY:
        stale = Q(used=None) | Q(used__lt=now - _USE_NOTED_EVERY)
        Key.objects.filter(stale, pk=key.pk).update(used=now)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_LETTERS))
        digits = _LETTERS[digit] + digits
    return digits
