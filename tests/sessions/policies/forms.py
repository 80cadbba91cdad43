"""The form of a policy, as a browser sends it."""

from __future__ import annotations

from typing import Any

from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import save_version


def saved(document: dict[str, Any] | None = None, note: str = "", name: str = "ours") -> Any:
    return save_version(local_team(), name, document or {}, "offload-first", note, None, COMMAND)


PRESET = to_dict(PRESETS["offload-first"])
