"""The policy of a new session: its team's active version, or the one being rolled out."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from sessions.actions.policies.policies import active_version
from sessions.models import PolicyVersion, Rollout, Team
from sessions.models.policies.rollouts import under_way


class Chosen(NamedTuple):
    """The policy version of a new session, who selected it, and the rollout running then."""

    version: PolicyVersion
    policy_from: str
    rollout: Rollout | None


def policy_for_new(team: Team, external_id: str) -> Chosen:
    """Select the policy version for a new session that names none.

    Deterministic per session id while the rollout does not change; sessions in a smaller share are
    also in a larger one. Raises UnknownPolicy if DEFAULT_POLICY names no policy.
    """
    rollout = under_way(team)
    running = rollout if rollout is not None and rollout.state == Rollout.State.RUNNING else None
    if running is not None and bucket(running, external_id) < running.share:
        return Chosen(running.version, "rollout", running)
    before = rollout.before if rollout is not None else None
    version = before or active_version(team)
    return Chosen(version, "default" if team.active_id is None else "team", running)


def bucket(rollout: Rollout, external_id: str) -> int:
    """Hash the ids to 0–99: evenly distributed, and differently for each rollout."""
    said = f"{rollout.pk}{external_id}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(said).hexdigest(), 16) % 100
