"""What versions of policies say, read as this release can."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from compaction.policies.fields import Field, fields
from compaction.policies.origin import origins
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.resolve import Source
from compaction.policies.yaml import written
from sessions.models.policies import PolicyVersion
from sessions.models.sessions import Session


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


@dataclass(frozen=True, slots=True)
class Effective:
    """One value that a session runs under, in which strategy, and who said so.

    `version_has` is what the version of its policy says itself.
    """

    field: Field
    strategy: str
    source: Source
    version_has: Any

    @property
    def overrides(self) -> bool:
        """Whether it is another than the version's own."""
        return bool(self.field.value != self.version_has)

    @property
    def said_the_same(self) -> bool:
        """Whether somebody beside the policy said what the policy says anyway."""
        return self.source in ("request", "environment") and not self.overrides


def effective(session: Session) -> list[Effective]:
    """Every value of a session's policy, in order; none without a policy that this release runs.

    Of a version that was saved before there were overrides, the sources are told against its preset
    as it is shipped now.
    """
    version, document = session.policy_version, session.policy_document
    if version is None or document is None:
        return []
    try:
        policy, own = from_dict(document), from_dict(version.document)
    except InvalidPolicy:
        return []
    theirs = {one.path: one.value for one in fields(own)}
    found = session.overrides["sources"] if session.overrides is not None else None
    sources = found or origins(document, preset_document(base_name(version)))
    return [
        Effective(
            one,
            _strategy(policy, one.path),
            sources.get(one.path, "default"),
            theirs.get(one.path, one.value),
        )
        for one in fields(policy)
    ]


def _strategy(policy: Policy, path: str) -> str:
    if path.startswith("steps["):
        return policy.steps[int(path[len("steps[") : path.index("]")])].strategy
    return "recite" if path.startswith("recite.") else ""
