"""Documents of policy versions, read with the rules of this release."""

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
from sessions.models.policies.policies import PolicyVersion
from sessions.models.record.sessions import Session


def preset_document(name: str) -> dict[str, Any] | None:
    """The document of a preset as shipped with this release; None if there is no such preset."""
    return to_dict(PRESETS[name]) if name in PRESETS else None


def base_name(shown: PolicyVersion) -> str:
    """The preset a version is compared with: the one it is based on, or itself if it is a
    preset."""
    return shown.policy.name if shown.policy.name in PRESETS else shown.policy.based_on


def readable(version: PolicyVersion) -> Policy | None:
    """The policy of a version; None if this release cannot run it."""
    try:
        return from_dict(version.document)
    except InvalidPolicy:
        return None


def yaml_of(shown: PolicyVersion) -> str:
    """The YAML form of a version, or plain JSON if this release cannot read it."""
    if readable(shown) is None:
        return json.dumps(shown.document, indent=2)
    based_on = base_name(shown)
    return written(shown.document, based_on, preset_document(based_on))


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting that a session runs under, with its strategy and its source.

    `version_has` is the value in the policy version itself.
    """

    field: Field
    strategy: str
    source: Source
    version_has: Any

    @property
    def overrides(self) -> bool:
        """Whether the value differs from the policy version's."""
        return bool(self.field.value != self.version_has)

    @property
    def in_words(self) -> str:
        """The value as pages show it."""
        return self.field.in_words(self.field.value)

    @property
    def version_in_words(self) -> str:
        """The policy version's value as pages show it."""
        return self.field.in_words(self.version_has)

    @property
    def said_the_same(self) -> bool:
        """Whether an override repeats the policy version's own value."""
        return self.source in ("request", "environment") and not self.overrides


def effective(session: Session) -> list[Effective]:
    """The settings a session runs under, in order; empty without a policy that this release can
    run.

    For versions saved before overrides existed, sources are derived from their preset as shipped
    now.
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
