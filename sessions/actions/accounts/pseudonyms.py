"""Replace a person's name in an audit log by a pseudonym; its chain stays intact."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from sessions.actions.accounts import audit
from sessions.actions.accounts.chain import ERASED, ERASURE, SALT_CHARS, digest_of, line_of
from sessions.models import AuditEntry, Team

_OF_PEOPLE = ("member.", "role.", "invitation.", "login.")
"""Actions whose object is a person; entries of older versions have no `named_id`."""
_NAMES_IN_DETAIL = ("key.taken", "name.changed")
"""Actions whose details have user names. Elsewhere the same word may mean something else."""


@transaction.atomic
def erase_from_log(team: Team, user: User, actor: audit.Actor) -> str:
    """Replace name, email and address of a person in a team's log by a pseudonym, and add an entry
    that says so; return the pseudonym. This cannot be undone.

    Names that the person had before count too. The entry is by `actor`; if that is the same person,
    by the pseudonym.
    """
    pseudonym = f"{ERASED}{secrets.token_hex(4)}"
    names = _names(team, user)
    # What others add meanwhile waits until this transaction ends.
    Team.objects.select_for_update(no_key=True).filter(pk=team.pk).values("pk").first()
    if actor.user is not None and actor.user.pk == user.pk:
        actor = audit.Actor(actor.via, pseudonym)
    rows = AuditEntry.objects.filter(team=team).order_by("number")
    changes = {row.pk: _change(row, user.pk, names, pseudonym) for row in rows.iterator(2000)}
    many = 0
    for pk, changed in changes.items():
        many += AuditEntry.objects.filter(pk=pk).update(**changed) if changed else 0
    audit.note(team, actor, ERASURE, pseudonym, entries=many)
    return pseudonym


def _names(team: Team, user: User) -> set[str]:
    names = {user.get_username(), user.email}
    renamed = AuditEntry.objects.filter(team=team, actor_id=user.pk, action="name.changed")
    for named, detail in renamed.values_list("named", "detail"):
        names |= {named, str(detail.get("before", ""))}
    return names - {""}


def _change(row: AuditEntry, user: int, names: Collection[str], pseudonym: str) -> dict[str, Any]:
    """The new values of an entry's columns that name the person."""
    line = line_of(row)
    changed: dict[str, Any] = {}
    about = row.named_id == user or (row.action.startswith(_OF_PEOPLE) and row.named in names)
    if row.actor_id == user or (about and row.action == "login.failed"):
        changed |= {"actor": pseudonym, "actor_id": None, "ip": ""}
        changed |= _sealed(line, "actor", row.actor, row.actor_id, row.ip)
    if about:
        changed |= {"named": pseudonym, "named_id": None}
        changed |= _sealed(line, "named", row.named, row.named_id)
    here = names if row.action in _NAMES_IN_DETAIL else {name for name in names if "@" in name}
    detail = _without(row.detail, here, pseudonym)
    if detail != row.detail:
        changed |= {"detail": detail} | _sealed(line, "detail", row.detail)
    return changed


def _sealed(line: dict[str, Any], part: str, *values: Any) -> dict[str, str]:
    """The digest of a part in place of its salt."""
    salt = line["salts"][part]
    return {f"{part}_salt": digest_of(salt, *values)} if len(salt) == SALT_CHARS else {}


def _without(value: Any, names: Collection[str], pseudonym: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, names, pseudonym) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, names, pseudonym) for one in value]
    if not isinstance(value, str):
        return value
    return " ".join(pseudonym if word in names else word for word in value.split(" "))
