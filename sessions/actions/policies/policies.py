"""A team's policies as versioned data."""

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
from sessions.actions.accounts import audit
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.policies.policy_documents import preset_document
from sessions.models.policies.policy_use import PolicyUse, use_of
from sessions.models.record.blobs import sha256
from sessions.models.web.statements import Statement, given_text, given_uuid

NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?")
"""Valid policy names: 1 to 80 characters that need no escaping in a URL."""
NOTE_LENGTH = 300
"""Maximum length of a version's note, in characters; the size of its column."""


class UnknownPolicy(LookupError):
    """The team has no such policy or version, and there is no such preset."""


def to_simulate(team: Team) -> list[str]:
    """Names of the policies that can be simulated: presets, and the newest versions of the team's
    own, as "name@number"."""
    own = (
        Policy.objects.filter(team=team, preset=False)
        .annotate(newest=Max("versions__number"))
        .filter(newest__isnull=False)
        .order_by("name")
        .values_list("name", "newest")
    )
    presets = [name for name in PRESETS if name != "passthrough"]
    return [*presets, *(f"{name}@{newest}" for name, newest in own)]


def active_version(team: Team) -> PolicyVersion:
    """The policy version for a team's new sessions that name none.

    The team's choice, else the DEFAULT_POLICY setting. Raises UnknownPolicy if that setting names
    no policy of this team.
    """
    if team.active_id is not None and team.active is not None:
        return team.active
    return named_version(team, settings.DEFAULT_POLICY)


def named_version(team: Team, ref: str) -> PolicyVersion:
    """The version named by "name" (the newest) or "name@3"; presets are created on demand.

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
        return f"is not a policy of this team; presets are always available: {own}"
    there = f"{name}@1 to {name}@{newest}" if newest > 1 else f"only {name}@1"
    return f"is not a version of {name}; there {'are' if newest > 1 else 'is'} {there}"


def named_policy(team: Team, name: str) -> Policy:
    """The team's policy with that name; presets are created on demand. Raises UnknownPolicy."""
    return named_version(team, name).policy


def in_use(team: Team) -> PolicyUse:
    """Where the team's policies are in use, also if DEFAULT_POLICY names no policy."""
    try:
        return use_of(team, active_version(team))
    except UnknownPolicy:
        return use_of(team, None)


def preset_version(team: Team, name: str) -> PolicyVersion:
    """The team's version of a preset as shipped now; created if missing.

    A release that changes a preset creates a new version; old runs keep theirs. Raises KeyError for
    an unknown preset.
    """
    return version_of(team, name, to_dict(PRESETS[name]), preset=True)


def imported_version(team: Team, name: str, document: dict[str, Any]) -> PolicyVersion:
    """The version with this document of the policy of that name; if there is none, a version of
    `NAME-imported`. Raises InvalidPolicy."""
    if name in PRESETS and document == to_dict(PRESETS[name]):
        return preset_version(team, name)
    if (known := _KNOWN.first(team=team.pk, name=name, digest=_digest(document))) is not None:
        return known
    name = f"{name.removesuffix('-imported')[:71]}-imported"
    return version_of(team, name, checked(name, document, "", ""), preset=False)


def version_of(team: Team, name: str, document: dict[str, Any], *, preset: bool) -> PolicyVersion:
    """The policy version with exactly this document; created with the next number if missing."""
    # Pages only look it up: no lock, nothing to commit.
    known = _KNOWN.first(team=team.pk, name=name, digest=_digest(document))
    return known or _made_version(team, name, document, preset=preset)


_KNOWN = Statement(
    lambda: (
        PolicyVersion.objects.filter(
            policy__team_id=given_uuid("team"),
            policy__name=given_text("name"),
            digest=given_text("digest"),
        )
        .select_related("policy")
        .order_by("pk")
    )
)


@transaction.atomic
def _made_version(
    team: Team, name: str, document: dict[str, Any], *, preset: bool
) -> PolicyVersion:
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
    """Save a document as a version of a team's own policy; returns the existing version if one is
    identical.

    Values that the document omits come from its base, then from the strategies; its name becomes
    the policy's. `based_on` names the base preset or is empty. An existing version keeps its note
    and author. Raises InvalidPolicy.
    """
    saved = checked(name, document, based_on, note)
    policy, made = Policy.objects.select_for_update().get_or_create(
        team=team, name=name, defaults={"based_on": based_on}
    )
    if policy.preset:
        raise InvalidPolicy("name", "belongs to a preset of another release; choose another")
    before = policy.versions.count()
    version = _version(policy, saved, note.strip(), author)
    if policy.based_on != based_on:
        policy.based_on = based_on
        policy.save(update_fields=["based_on"])
    if version.number > before:
        audit.note(team, actor, "policy.saved", str(version), based_on=based_on, made=made)
    return version


def checked(name: str, document: Mapping[str, Any], based_on: str, note: str) -> dict[str, Any]:
    """The document that `save_version` would store, with every value filled in. Raises
    InvalidPolicy."""
    if name in PRESETS:
        raise InvalidPolicy("name", "belongs to a preset, which cannot be changed; choose another")
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
        raise InvalidPolicy(
            "policy", f"is larger than {LONGEST // 1024} kB when all values are filled in"
        )
    return made


def newest_number(team: Team, name: str) -> int:
    """The number of a policy's newest version; 0 if there is no such policy."""
    if not NAME.fullmatch(name):
        return 0
    rows = PolicyVersion.objects.filter(policy__team=team, policy__name=name)
    return rows.order_by("-number").values_list("number", flat=True).first() or 0
