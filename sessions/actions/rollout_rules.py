"""Who may do what with a rollout, and in which state."""

from __future__ import annotations

from typing import Literal

from django.contrib.auth.models import User

from sessions.actions.policies import UnknownPolicy, active_version
from sessions.models import Membership, PolicyVersion, Rollout, Team
from sessions.models.rollouts import under_way
from sessions.models.teams import may

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
"""In which states each can be done."""


def why_not(rollout: Rollout, act: Act, user: User | None) -> str:
    """Why this person cannot do that now, as a sentence; empty where he can."""
    return may_not(rollout, act, user) or not_now(rollout, act)


def not_now(rollout: Rollout, act: Act) -> str:
    """Why nobody can do that with a rollout as it stands; empty where somebody can."""
    if rollout.state not in FROM[act]:
        return f"It is {rollout.get_state_display().lower()}."
    if act in ("accept", "roll_back"):
        other = under_way(rollout.team)
        if other is not None and other.pk != rollout.pk:
            return f"{other.version} is under way. Complete it or roll it back first."
    if act == "accept" and is_active(rollout.team, rollout.version):
        return "New sessions begin with it already."
    replaced = rollout.team.active_id != rollout.version_id
    if act == "roll_back" and rollout.state == State.COMPLETE and replaced:
        return "Another version took its place since."
    return ""


def is_active(team: Team, version: PolicyVersion) -> bool:
    """Whether the new sessions of a team begin with that version, but for rollouts."""
    try:
        return active_version(team).pk == version.pk
    except UnknownPolicy:  # what DEFAULT_POLICY names is not there: any choice is better
        return False


def may_not(rollout: Rollout, act: Act, user: User | None) -> str:
    """Why this person may not do that, whatever state it is in; empty where he may."""
    own = user is not None and rollout.proposed_by_id == user.pk
    if act == "decline" and own:  # who proposed may think better of it
        return ""
    if user is None or not may(user.pk, rollout.team, "accept"):
        return "Only owners and editors may do that."
    owner = Membership.objects.filter(user=user, team=rollout.team, role=Membership.Role.OWNER)
    if act == "accept" and own and not owner.exists():
        return "You proposed it: somebody else has to accept it, or an owner."
    return ""
