"""What versions of policies say, read as this release can."""

from __future__ import annotations

import json
from typing import Any

from compaction.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policy_yaml import written
from compaction.presets import PRESETS
from sessions.models.policies import PolicyVersion


def preset_document(name: str) -> dict[str, Any] | None:
    """What a preset says, as it is shipped now; None for a name that is none."""
    return to_dict(PRESETS[name]) if name in PRESETS else None


def base_name(shown: PolicyVersion) -> str:
    """The preset that a version is compared with: what it is based on, or a preset itself."""
    return shown.policy.name if shown.policy.name in PRESETS else shown.policy.based_on


def readable(version: PolicyVersion) -> Policy | None:
    """The policy of a version; None for one of another release that this one cannot run."""
    try:
        return from_dict(version.document)
    except InvalidPolicy:
        return None


def yaml_of(shown: PolicyVersion) -> str:
    """The readable form of a version; that of another release as plain JSON."""
    if readable(shown) is None:
        return json.dumps(shown.document, indent=2)
    based_on = base_name(shown)
    return written(shown.document, based_on, preset_document(based_on))
