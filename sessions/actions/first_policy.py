"""Which policy a new session begins with: its team's, or the one that a rollout brings."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from sessions.actions.policies import active_version
from sessions.models import PolicyVersion, Rollout, Team
from sessions.models.rollouts import under_way


class Chosen(NamedTuple):
    """What a session begins with, by whose choice, and the rollout that was running then."""

    version: PolicyVersion
    policy_from: str
    rollout: Rollout | None


def policy_for_new(team: Team, external_id: str) -> Chosen:
    """What a new session of that id begins with, if it names no policy.

    The same answer for the same id as long as the rollout stands as it does; who was in a smaller
    share is in a larger one. Raises UnknownPolicy where DEFAULT_POLICY names nothing.
    """
    rollout = under_way(team)
    running = rollout if rollout is not None and rollout.state == Rollout.State.RUNNING else None
    if running is not None and bucket(running, external_id) < running.share:
        return Chosen(running.version, "rollout", running)
    before = rollout.before if rollout is not None else None
    version = before or active_version(team)
    return Chosen(version, "default" if team.active_id is None else "team", running)


def bucket(rollout: Rollout, external_id: str) -> int:
    """0 to 99, by the two ids alone: evenly spread, and another spread in another rollout."""
    said = f"{rollout.pk}{external_id}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(said).hexdigest(), 16) % 100
