"""Policy versions on their way to the new sessions of a team, step by step, and back.

    proposed ── accept ──▶ running at 10 % ── widen ──▶ 50 % ── widen ──▶ complete (100 %)
       │                    │        ▲                                       │
    decline              pause     resume                                    │
       ▼                    ▼        │                                       │
    declined               paused ───┘      roll_back, from each of the three: rolled back

Every change asks for the state it is made from, and is written together with its audit entry: of
two people who do the same at once one does it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from compaction.policies.policy import InvalidPolicy, from_dict
from sessions.actions import audit
from sessions.actions.bounds import Guardrail
from sessions.actions.policies import UnknownPolicy, active_version
from sessions.models import AuditEntry, Membership, PolicyVersion, Rollout, Simulation, Team
from sessions.models.teams import may

STAGES = (10, 50, 100)
"""Percent of the new sessions, one stage after the other; at the last it is complete."""
NOTE_LENGTH, REASON_LENGTH = 1000, 300
"""Characters at most: what the columns hold."""

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


class CannotRollOut(ValueError):
    """Why a rollout cannot be changed so, as a sentence; `field` names what was given wrong."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.field = field


class MayNot(CannotRollOut):
    """The same, where somebody else may."""


def title(user: User | None) -> str:
    """A person as pages and answers name him; empty for nobody, or for an account that is gone."""
    return (user.get_full_name() or user.username) if user else ""


def under_way(team: Team) -> Rollout | None:
    """The one rollout of a team that is running or paused."""
    rows = Rollout.objects.select_related("version__policy", "before__policy")
    return rows.filter(team=team, state__in=Rollout.UNDER_WAY).first()


def of_teams(teams: Iterable[Team], rollout_id: UUID) -> Rollout | None:
    """The rollout of that id in one of these teams."""
    rows = Rollout.objects.select_related(
        *("team__active", "version__policy", "before__policy"),
        *("simulation", "proposed_by", "decided_by"),
    )
    return rows.filter(team__in=list(teams), pk=rollout_id).first()


def topic_versions(ids: Iterable[UUID]) -> dict[UUID, tuple[UUID, int]]:
    """For pages that follow a rollout: its team, and a number that changes with it and with every
    session that is compared."""
    rows = Rollout.objects.filter(pk__in=list(ids)).annotate(
        moved=Coalesce(Sum("sessions__version"), 0), count=Count("sessions")
    )
    return {
        row.pk: (row.team_id, int(row.changed.timestamp() * 1000) + row.moved + row.count)
        for row in rows
    }


def next_stage(rollout: Rollout) -> int | None:
    """The share that `widen` would bring; None where there is none."""
    return next((stage for stage in STAGES if stage > rollout.share), None)


# Who may do what, and when


def why_not(rollout: Rollout, act: Act, user: User | None) -> str:
    """Why this person cannot do that now, as a sentence; empty where he can."""
    return _may_not(rollout, act, user) or _not_now(rollout, act)


def _not_now(rollout: Rollout, act: Act) -> str:
    if rollout.state not in FROM[act]:
        return f"It is {rollout.get_state_display().lower()}."
    if act in ("accept", "roll_back"):
        other = under_way(rollout.team)
        if other is not None and other.pk != rollout.pk:
            return f"{other.version} is under way. Complete it or roll it back first."
    if act == "accept" and _is_active(rollout.team, rollout.version):
        return "New sessions begin with it already."
    replaced = rollout.team.active_id != rollout.version_id
    if act == "roll_back" and rollout.state == State.COMPLETE and replaced:
        return "Another version took its place since."
    return ""


def _is_active(team: Team, version: PolicyVersion) -> bool:
    try:
        return active_version(team).pk == version.pk
    except UnknownPolicy:  # what DEFAULT_POLICY names is not there: any choice is better
        return False


def _may_not(rollout: Rollout, act: Act, user: User | None) -> str:
    own = user is not None and rollout.proposed_by_id == user.pk
    if act == "decline" and own:  # who proposed may think better of it
        return ""
    if user is None or not may(user.pk, rollout.team, "accept"):
        return "Only owners and editors may do that."
    owner = Membership.objects.filter(user=user, team=rollout.team, role=Membership.Role.OWNER)
    if act == "accept" and own and not owner.exists():
        return "You proposed it: somebody else has to accept it, or an owner."
    return ""


# Changes


def propose(
    version: PolicyVersion,
    note: str,
    guardrail: Guardrail,
    actor: audit.Actor,
    simulation: Simulation | None = None,
) -> Rollout:
    """Ask for a version to go out; somebody else accepts it. Raises CannotRollOut.

    `guardrail` as `bounds.guardrail_of` gives it; `simulation` is shown as evidence.
    """
    team = version.policy.team
    if len(note) > NOTE_LENGTH or "\x00" in note:
        raise CannotRollOut(f"A note has at most {NOTE_LENGTH} characters.", "note")
    try:
        from_dict(version.document)
    except InvalidPolicy as error:
        raise CannotRollOut(f"{version} cannot run: {error}.", "version") from None
    if simulation is not None and not _is_of(simulation, version):
        raise CannotRollOut(f"That simulation did not run {version}.", "simulation")
    with transaction.atomic():
        locked = _locked(team)
        if _is_active(locked, version):
            raise CannotRollOut(f"New sessions begin with {version} already.", "version")
        open_ = locked.rollouts.filter(
            version=version, state__in=[State.PROPOSED, *Rollout.UNDER_WAY]
        ).first()
        if open_ is not None:
            state = open_.get_state_display().lower()
            raise CannotRollOut(f"{version} is {state} already.", "version")
        made = Rollout.objects.create(
            team=locked,
            version=version,
            before=locked.active,
            simulation=simulation,
            note=note.strip(),
            guardrail=guardrail,
            proposed_by=actor.user,
        )
        _noted(made, actor, "proposed")
    return made


def _is_of(simulation: Simulation, version: PolicyVersion) -> bool:
    same_team = simulation.team_id == version.policy.team_id
    return same_team and simulation.versions.filter(pk=version.pk).exists()


def accept(rollout: Rollout, actor: audit.Actor) -> Rollout:
    """Let the first tenth of the new sessions begin with it. Raises CannotRollOut."""

    def begin(found: Rollout) -> dict[str, Any]:
        return {
            "state": State.RUNNING,
            "share": STAGES[0],
            "before": found.team.active,  # by now it may be another than when it was proposed
            "began": timezone.now(),
            "decided_by": actor.user,
        }

    return _change(rollout, "accept", actor, begin, "accepted")


def decline(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Refuse what was proposed, or take one's own proposal back. Raises CannotRollOut."""
    values = {"state": State.DECLINED, "decided_by": actor.user, "reason": _reason(reason)}
    return _change(rollout, "decline", actor, lambda _: values, "declined")


def widen(rollout: Rollout, share: int, actor: audit.Actor) -> Rollout:
    """Bring it to the next stage, which `share` names; at 100 it is complete, and what all new
    sessions begin with. Raises CannotRollOut."""

    def wider(found: Rollout) -> dict[str, Any]:
        stage = next_stage(found)
        if share != stage:
            raise CannotRollOut(f"It is at {found.share} %, and {stage} % comes next.", "share")
        if stage != STAGES[-1]:
            return {"share": stage}
        _make_active(found.team, found.version)
        return {"share": stage, "state": State.COMPLETE}

    action = "completed" if share == STAGES[-1] else "widened"
    return _change(rollout, "widen", actor, wider, action)


def pause(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Let no further session begin with it for now. Raises CannotRollOut."""
    values = {"state": State.PAUSED, "reason": _reason(reason)}
    return _change(rollout, "pause", actor, lambda _: values, "paused")


def resume(rollout: Rollout, actor: audit.Actor) -> Rollout:
    """Go on where it paused, without the bounds that are broken: they would pause it again.

    Raises CannotRollOut.
    """

    without: list[str] = []

    def go_on(found: Rollout) -> dict[str, Any]:
        without.extend(broken(found))
        guardrail = found.guardrail | dict.fromkeys(without)
        return {"state": State.RUNNING, "reason": "", "guardrail": guardrail}

    return _change(rollout, "resume", actor, go_on, "resumed", without=without)


def roll_back(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Let new sessions begin with what they began with before, all of them, at once.

    Sessions that run keep what they have. Raises CannotRollOut.
    """

    def back(found: Rollout) -> dict[str, Any]:
        if found.state == State.COMPLETE:
            _make_active(found.team, found.before)
        return {"state": State.ROLLED_BACK, "reason": _reason(reason)}

    return _change(rollout, "roll_back", actor, back, "rolled_back")


def broken(rollout: Rollout) -> list[str]:
    """Names of the bounds that the last check found broken, and that are still on."""
    found = rollout.found.get("bounds", {})
    on = [name for name, bound in rollout.guardrail.items() if bound is not None]
    return [name for name in on if found.get(name, {}).get("state") == "broken"]


def _make_active(team: Team, version: PolicyVersion | None) -> None:
    team.active = version
    team.save(update_fields=["active"])


def _reason(text: str) -> str:
    return text.replace("\x00", "").strip()[:REASON_LENGTH]


def _locked(team: Team) -> Team:
    """The team's row, so that its rollouts change one after the other. Sessions can be made
    meanwhile: they only refer to it."""
    return Team.objects.select_for_update(no_key=True).get(pk=team.pk)


def _change(
    rollout: Rollout,
    act: Act,
    actor: audit.Actor,
    values: Callable[[Rollout], Mapping[str, Any]],
    action: str,
    **detail: Any,
) -> Rollout:
    """One change from the state and share that the caller saw, with its audit entry."""
    with transaction.atomic():
        team = _locked(rollout.team)
        found = Rollout.objects.select_related("version__policy", "before__policy").get(
            pk=rollout.pk
        )
        found.team = team
        # The guardrail, and who runs this machine, ask nobody.
        asks = actor.via in (AuditEntry.Via.PERSON, AuditEntry.Via.KEY)
        if asks and (refusal := _may_not(found, act, actor.user)):
            raise MayNot(refusal)
        if refusal := _not_now(found, act):
            raise CannotRollOut(refusal)
        seen = {"state": rollout.state, "share": rollout.share}
        new = {**values(found), "changed": timezone.now()}
        if not Rollout.objects.filter(pk=found.pk, **seen).update(**new):
            raise CannotRollOut("Somebody changed it a moment ago. Look again.")
        for name, value in new.items():
            setattr(found, name, value)
        _noted(found, actor, action, **detail)
    return found


def _noted(rollout: Rollout, actor: audit.Actor, action: str, **detail: Any) -> None:
    detail |= {"rollout": str(rollout.pk), "share": rollout.share}
    detail["before"] = str(rollout.before) if rollout.before else None
    if rollout.reason:
        detail["reason"] = rollout.reason
    audit.note(rollout.team, actor, f"rollout.{action}", str(rollout.version), **detail)


# What a new session begins with


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
    running = rollout if rollout is not None and rollout.state == State.RUNNING else None
    if running is not None and bucket(running, external_id) < running.share:
        return Chosen(running.version, "rollout", running)
    before = rollout.before if rollout is not None else None
    version = before or active_version(team)
    return Chosen(version, "default" if team.active_id is None else "team", running)


def bucket(rollout: Rollout, external_id: str) -> int:
    """0 to 99, by the two ids alone: evenly spread, and another spread in another rollout."""
    said = f"{rollout.pk}{external_id}".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(said).hexdigest(), 16) % 100
