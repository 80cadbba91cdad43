"""What a draft changes, against the version it starts from and the active one."""

from __future__ import annotations

from typing import Any, NamedTuple

from compaction.policies.origin import SettingChange, changes
from sessions.actions.policies.policies import active_version, named_version
from sessions.models import Policy, Team
from sessions.models.policies.policy_documents import preset_document
from sessions.views.policies.policy_drafts import Draft


class Differences(NamedTuple):
    """What a draft changes against a version."""

    ref: str
    active: bool
    changes: tuple[SettingChange, ...]


def differences_of(
    team: Team, policy: Policy | None, draft: Draft, document: dict[str, Any]
) -> list[Differences]:
    """The draft against the version it starts from, then against the active one if another."""
    active = active_version(team)
    found = []
    if policy is not None and draft.seen:
        start = named_version(team, policy.name)
        found.append(Differences(str(start), start == active, changes(start.document, document)))
    elif (base := preset_document(draft.based_on)) is not None:
        same = active.policy.name == draft.based_on
        found.append(Differences(draft.based_on, same, changes(base, document)))
    if not any(one.active for one in found):
        found.append(Differences(str(active), True, changes(active.document, document)))
    return found
