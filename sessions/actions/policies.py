"""Policies of a team as versioned data."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction

from compaction.policy import PRESETS, to_dict
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.blobs import sha256


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
    digest = sha256(json.dumps(document, sort_keys=True).encode())
    known = policy.versions.filter(digest=digest).first()
    if known is not None:
        return known
    newest = policy.versions.order_by("-number").first()
    return PolicyVersion.objects.create(
        policy=policy,
        number=newest.number + 1 if newest else 1,
        document=document,
        digest=digest,
    )
