"""Policies of a team as versioned data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max

from compaction.policies.origin import filled
from compaction.policies.policy import InvalidPolicy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import LONGEST
from sessions.actions import audit
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.blobs import sha256
from sessions.models.policy_documents import preset_document
from sessions.models.policy_use import Use, use_of

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?")
"""What a team may call a policy: 1 to 80 characters that need no escaping in an address."""
NOTE_LENGTH = 300
"""Characters of a version's note at most: what its column holds."""


class UnknownPolicy(LookupError):
    """No preset and no policy of the team goes by that name, or it has no such version."""


def active_version(team: Team) -> PolicyVersion:
    """What new sessions of a team begin with that name no policy.

    The team's choice, else what the setting DEFAULT_POLICY names. Raises UnknownPolicy where that
    setting names nothing this team has.
    """
    if team.active_id is not None and team.active is not None:
        return team.active
    return named_version(team, settings.DEFAULT_POLICY)


def named_version(team: Team, ref: str) -> PolicyVersion:
    """The version that "name" (its newest) or "name@3" stands for; a preset is made when needed.

    Raises UnknownPolicy.
    """
    name, _, number = ref.partition("@")
    if name in PRESETS:
        shipped = preset_version(team, name)
        if not number:
            return shipped
    versions = PolicyVersion.objects.select_related("policy").filter(
        policy__team=team, policy__name=name
    )
    if number:
        wanted = int(number) if number.isdecimal() and len(number) < 10 else 0
        versions = versions.filter(number=wanted)
    found = None if "\x00" in ref else versions.order_by("-number").first()
    if found is None:
        raise UnknownPolicy(_what_there_is(team, name))
    return found


def _what_there_is(team: Team, name: str) -> str:
    known = PolicyVersion.objects.filter(policy__team=team, policy__name=name)
    newest = None if "\x00" in name else known.aggregate(newest=Max("number"))["newest"]
    if newest is None:
        own = ", ".join(sorted(PRESETS))
        return f"is no policy of this team; there are always {own}"
    there = f"{name}@1 to {name}@{newest}" if newest > 1 else f"only {name}@1"
    return f"is no version of {name}; there {'are' if newest > 1 else 'is'} {there}"


def named_policy(team: Team, name: str) -> Policy:
    """The team's policy of that name; a preset is made when needed. Raises UnknownPolicy."""
    return named_version(team, name).policy


def in_use(team: Team) -> Use:
    """Where the team's policies are in use; a setting DEFAULT_POLICY that names none is no use."""
    try:
        return use_of(team, active_version(team))
    except UnknownPolicy:
        return use_of(team, None)


def preset_version(team: Team, name: str) -> PolicyVersion:
    """A team's version of a preset as it is shipped now; made when it is not there yet.

    A new release that changes a preset makes a new version; old runs keep theirs. Raises KeyError
    for a name that is no preset.
    """
    return version_of(team, name, to_dict(PRESETS[name]), preset=True)


@transaction.atomic
def version_of(team: Team, name: str, document: dict[str, Any], *, preset: bool) -> PolicyVersion:
    """The version of a team's policy that says exactly this; the next number if none does."""
    policy, _ = Policy.objects.select_for_update().get_or_create(
        team=team, name=name, defaults={"preset": preset}
    )
    return _version(policy, document, "", None)


def _version(
    policy: Policy, document: dict[str, Any], note: str, author: User | None
) -> PolicyVersion:
    digest = _digest(document)
    known = policy.versions.filter(digest=digest).first()
    if known is not None:
        return known
    newest = policy.versions.order_by("-number").first()
    return PolicyVersion.objects.create(
        policy=policy,
        number=newest.number + 1 if newest else 1,
        document=document,
        digest=digest,
        note=note,
        author=author,
    )


def _digest(document: dict[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode())


@transaction.atomic
def save_version(
    team: Team,
    name: str,
    document: Mapping[str, Any],
    based_on: str,
    note: str,
    author: User | None,
    actor: audit.Actor,
) -> PolicyVersion:
    """The version of a team's own policy that says exactly this; a new one where none does.

    Values that the document leaves out take those of its base, then of the strategies; its name
    becomes the policy's. `based_on` names the preset it rests on, or nothing. What a version said
    before is not written again, and keeps its note and author. Raises InvalidPolicy.
    """
    saved = checked(name, document, based_on, note)
    policy, made = Policy.objects.select_for_update().get_or_create(
        team=team, name=name, defaults={"based_on": based_on}
    )
    if policy.preset:
        raise InvalidPolicy("name", "is that of a preset of another release; take another")
    before = policy.versions.count()
    version = _version(policy, saved, note.strip(), author)
    if policy.based_on != based_on:
        policy.based_on = based_on
        policy.save(update_fields=["based_on"])
    if version.number > before:
        audit.note(team, actor, "policy.saved", str(version), based_on=based_on, made=made)
    return version


def checked(name: str, document: Mapping[str, Any], based_on: str, note: str) -> dict[str, Any]:
    """What `save_version` would store: every value written out. Raises InvalidPolicy."""
    if name in PRESETS:
        raise InvalidPolicy("name", "is that of a preset, which stays as it is; take another")
    if name == "new" or not NAME.fullmatch(name):
        raise InvalidPolicy(
            "name", "must be 1 to 80 of a-z, 0-9, dot, dash and underscore, and not the word new"
        )
    if based_on and based_on not in PRESETS:
        raise InvalidPolicy("based_on", f"must be one of {', '.join(sorted(PRESETS))}, or empty")
    if len(note) > NOTE_LENGTH or "\x00" in note:
        raise InvalidPolicy("note", f"must be text of at most {NOTE_LENGTH} characters")
    if not isinstance(document, Mapping):
        raise InvalidPolicy("policy", "must be an object")
    whole = filled({**document, "name": name, "version": 1}, preset_document(based_on))
    made = to_dict(from_dict(whole))
    if len(json.dumps(made)) > LONGEST:
        raise InvalidPolicy("policy", f"takes more than {LONGEST // 1024} kB when written out")
    return made


def newest_number(team: Team, name: str) -> int:
    """The number of a policy's newest version; 0 where there is no such policy."""
    if not NAME.fullmatch(name):
        return 0
    rows = PolicyVersion.objects.filter(policy__team=team, policy__name=name)
    return rows.order_by("-number").values_list("number", flat=True).first() or 0
