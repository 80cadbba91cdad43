"""Permissions and states for actions on a rollout."""

from __future__ import annotations

from typing import Literal

from django.contrib.auth.models import User

from sessions.actions.policies.policies import UnknownPolicy, active_version
from sessions.models import Membership, PolicyVersion, Rollout, Team
from sessions.models.accounts.teams import may
from sessions.models.policies.rollouts import under_way

Act = Literal["accept", "decline", "widen", "pause", "resume", "roll_back"]
State = Rollout.State

FROM: dict[Act, tuple[str, ...]] = {
    "accept": (State.PROPOSED,),
    "decline": (State.PROPOSED,),
    "widen": (State.RUNNING,),
    "pause": (State.RUNNING,),
    "resume": (State.PAUSED,),
    "roll_back": (State.RUNNING, State.PAUSED, State.COMPLETE),
}
"""The states in which each action is possible."""


def why_not(rollout: Rollout, act: Act, user: User | None) -> str:
    """Why the user cannot perform the action now, as a sentence; empty if they can."""
    return may_not(rollout, act, user) or not_now(rollout, act)


def not_now(rollout: Rollout, act: Act) -> str:
    """Why the rollout's state prevents the action; empty if it does not."""
    if rollout.state not in FROM[act]:
        return f"The rollout is {rollout.get_state_display().lower()}."
    if act in ("accept", "roll_back"):
        other = under_way(rollout.team)
        if other is not None and other.pk != rollout.pk:
            return f"{other.version} is being rolled out. Complete it or roll it back first."
    if act == "accept" and is_active(rollout.team, rollout.version):
        return "New sessions already use this version."
    replaced = rollout.team.active_id != rollout.version_id
    if act == "roll_back" and rollout.state == State.COMPLETE and replaced:
        return "Another version has become active since."
    return ""


def is_active(team: Team, version: PolicyVersion) -> bool:
    """Whether a version is the team's active one, ignoring rollouts."""
    try:
        return active_version(team).pk == version.pk
    except UnknownPolicy:  # DEFAULT_POLICY names no policy, so nothing is active
        return False


def may_not(rollout: Rollout, act: Act, user: User | None) -> str:
    """Why the user lacks permission for the action, whatever the state; empty if they have it."""
    own = user is not None and rollout.proposed_by_id == user.pk
    if act == "decline" and own:  # the proposer may withdraw
        return ""
    if user is None or not may(user.pk, rollout.team, "accept"):
        return "Only owners and editors can do this. Ask one of them."
    owner = Membership.objects.filter(user=user, team=rollout.team, role=Membership.Role.OWNER)
    if act == "accept" and own and not owner.exists():
        return "You cannot accept your own proposal. Ask another editor, or an owner."
    return ""
