"""The hash chain of an audit log: how an entry is hashed, and the first broken link.

An entry's hash covers the hash before it, so that changing, removing or inserting an entry breaks
every later one. What may name a person (actor, object, details) is covered by a salted digest:
without its salt no guess can be tested, so an erased name is gone while the chain still holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from sessions.models import AuditEntry, Team

SALT_CHARS = 32
ERASED = "erased-"
"""Begins every pseudonym."""
ERASURE = "person.erased"
"""The action of an erasure's entry, whose object is the pseudonym."""
_TABLE = AuditEntry._meta.db_table
GUARDS = {
    "sqlite": (f"{_TABLE}_appends", f"{_TABLE}_keeps"),
    "postgresql": (f"{_TABLE}_appends", f"{_TABLE}_keeps", f"{_TABLE}_stays"),
}
"""Triggers that refuse changes of entries, by database."""


class BrokenLink(NamedTuple):
    """The first thing wrong with a team's log: what must hold, and the entry's number."""

    team: str
    number: int
    rule: str

    def __str__(self) -> str:
        return f"team {self.team}, entry {self.number}: {self.rule}"


class Head(NamedTuple):
    """The end of an intact log: its last number and hash, and how many entries have a
    pseudonym."""

    number: int
    hash: str
    erased: int


def canonical(value: Any) -> bytes:
    """JSON in one form: sorted keys, ASCII, no spaces, whole numbers without a fraction."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    """Numbers as PostgreSQL and SQLite both return them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def digest_of(salt: str, *values: Any) -> str:
    """The digest of a part of an entry."""
    if len(salt) != SALT_CHARS:  # its values were erased: it is the digest
        return salt
    return hashlib.sha256(salt.encode() + canonical(values)).hexdigest()


def hash_of(line: Mapping[str, Any]) -> str:
    """The hash of an entry, from the values of a line of the export."""
    salts = line["salts"]
    covered = [
        1,  # the version of this recipe
        line["previous"],
        line["team"],
        line["number"],
        line["at"],
        line["via"],
        line["action"],
        digest_of(salts["actor"], line["actor"], line["actor_id"], line["ip"]),
        digest_of(salts["named"], line["named"], line["named_id"]),
        digest_of(salts["detail"], line["detail"]),
    ]
    return hashlib.sha256(canonical(covered)).hexdigest()


def line_of(row: AuditEntry) -> dict[str, Any]:
    """An entry as a line of the export, with everything that its hash covers."""
    return {
        "team": str(row.team_id),
        "number": row.number,
        "at": timestamp(row.at),
        "via": row.via,
        "actor": row.actor,
        "actor_id": row.actor_id,
        "ip": row.ip,
        "action": row.action,
        "named": row.named,
        "named_id": row.named_id,
        "detail": row.detail,
        "salts": {"actor": row.actor_salt, "named": row.named_salt, "detail": row.detail_salt},
        "previous": row.previous,
        "hash": row.hash,
    }


def timestamp(at: datetime) -> str:
    """A time as the hash covers it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def check(team: Team) -> Head | BrokenLink:
    """Check a team's log from its first entry; stop at the first broken link."""
    number, previous, erased = 0, "", 0
    known = AuditEntry.objects.filter(team=team, action=ERASURE).values_list("named", flat=True)
    pseudonyms = set(known)
    for row in AuditEntry.objects.filter(team=team).order_by("number").iterator(2000):
        number += 1
        if row.number != number:
            return BrokenLink(team.slug, number, "the entry is missing")
        if row.previous != previous:
            return BrokenLink(team.slug, number, "it does not follow the entry before it")
        if row.hash != hash_of(line_of(row)):
            return BrokenLink(team.slug, number, "its content does not match its hash")
        if has_pseudonym(row):
            erased += 1
            if not any(one in pseudonyms for one in _pseudonyms_in(row)):
                rule = f"its name is erased, and no {ERASURE} says so"
                return BrokenLink(team.slug, number, rule)
        previous = row.hash
    return Head(number, previous, erased)


def has_pseudonym(row: AuditEntry) -> bool:
    """Whether a part of the entry was replaced."""
    return any(len(salt) != SALT_CHARS for salt in line_of(row)["salts"].values())


def _pseudonyms_in(row: AuditEntry) -> Iterator[str]:
    stack: list[Any] = [row.actor, row.named, row.detail]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield from (word for word in value.split(" ") if word.startswith(ERASED))
        elif isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value


def missing_guards() -> list[str]:
    """The triggers that should refuse changes of the log, and do not exist."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgname FROM pg_trigger WHERE tgenabled <> 'D'")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        found = {row[0] for row in cursor.fetchall()}
    return [name for name in GUARDS[connection.vendor] if name not in found]
