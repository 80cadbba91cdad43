"""Rollouts of policy versions to new sessions of a team, in stages, and rollbacks.

    proposed ── accept ──▶ running at 10 % ── widen ──▶ 50 % ── widen ──▶ complete (100 %)
       │                    │        ▲                                       │
    decline              pause     resume                                    │
       ▼                    ▼        │                                       │
    declined               paused ───┘      roll_back, from each of the three: rolled back

Each change names the state it starts from and is written together with its audit entry, so that of
two concurrent changes only one succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from compaction.policies.policy import InvalidPolicy, from_dict
from sessions.actions.accounts import audit
from sessions.actions.policies.bounds import Guardrail
from sessions.actions.policies.rollout_rules import Act, is_active, may_not, not_now
from sessions.models import AuditEntry, PolicyVersion, Rollout, Simulation, Team

STAGES = (10, 50, 100)
"""Percent of new sessions per stage; the last stage completes the rollout."""
NOTE_LENGTH, REASON_LENGTH = 1000, 300
"""Maximum lengths in characters, as the columns hold."""

State = Rollout.State


class CannotRollOut(ValueError):
    """Why a rollout cannot be changed this way, as a sentence; `field` names the invalid input."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.field = field


class MayNot(CannotRollOut):
    """The user lacks permission for the change; another user may have it."""


def title(user: User | None) -> str:
    """A user's name for pages and answers; empty for None or a deleted account."""
    return (user.get_full_name() or user.username) if user else ""


def next_stage(rollout: Rollout) -> int | None:
    """The share that `widen` would set; None if there is none."""
    return next((stage for stage in STAGES if stage > rollout.share), None)


def propose(
    version: PolicyVersion,
    note: str,
    guardrail: Guardrail,
    actor: audit.Actor,
    simulation: Simulation | None = None,
) -> Rollout:
    """Propose a version for rollout; someone else has to accept it. Raises CannotRollOut.

    `guardrail` as returned by `bounds.guardrail_of`; `simulation` is shown as evidence.
    """
    team = version.policy.team
    if len(note) > NOTE_LENGTH or "\x00" in note:
        raise CannotRollOut(f"The note is too long. Use at most {NOTE_LENGTH} characters.", "note")
    try:
        from_dict(version.document)
    except InvalidPolicy as error:
        raise CannotRollOut(f"{version} cannot run: {error}.", "version") from None
    if simulation is not None and not _is_of(simulation, version):
        raise CannotRollOut(
            f"The simulation did not include {version}. Choose one that did.", "simulation"
        )
    with transaction.atomic():
        locked = _locked(team)
        if is_active(locked, version):
            raise CannotRollOut(f"New sessions already use {version}.", "version")
        open_ = locked.rollouts.filter(
            version=version, state__in=[State.PROPOSED, *Rollout.UNDER_WAY]
        ).first()
        if open_ is not None:
            state = open_.get_state_display().lower()
            raise CannotRollOut(f"{version} is already {state}.", "version")
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
    """Start the rollout with 10 % of new sessions. Raises CannotRollOut."""

    def begin(found: Rollout) -> dict[str, Any]:
        return {
            "state": State.RUNNING,
            "share": STAGES[0],
            "before": found.team.active,  # may have changed since the proposal
            "began": timezone.now(),
            "decided_by": actor.user,
        }

    return _change(rollout, "accept", actor, begin, "accepted")


def decline(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Decline a proposal, or withdraw one's own. Raises CannotRollOut."""
    values = {"state": State.DECLINED, "decided_by": actor.user, "reason": _reason(reason)}
    return _change(rollout, "decline", actor, lambda _: values, "declined")


def widen(rollout: Rollout, share: int, actor: audit.Actor) -> Rollout:
    """Advance to the next stage, which `share` must name. At 100 % the version becomes the team's
    active one. Raises CannotRollOut."""

    def wider(found: Rollout) -> dict[str, Any]:
        stage = next_stage(found)
        if share != stage:
            raise CannotRollOut(
                f"The rollout is at {found.share} %; the next stage is {stage} %.", "share"
            )
        if stage != STAGES[-1]:
            return {"share": stage}
        _make_active(found.team, found.version)
        return {"share": stage, "state": State.COMPLETE}

    action = "completed" if share == STAGES[-1] else "widened"
    return _change(rollout, "widen", actor, wider, action)


def pause(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Pause the rollout: no new session uses it for now. Raises CannotRollOut."""
    values = {"state": State.PAUSED, "reason": _reason(reason)}
    return _change(rollout, "pause", actor, lambda _: values, "paused")


def resume(rollout: Rollout, actor: audit.Actor) -> Rollout:
    """Resume a paused rollout, with exceeded limits turned off, because they would pause it again.

    Raises CannotRollOut.
    """

    without: list[str] = []

    def go_on(found: Rollout) -> dict[str, Any]:
        without.extend(broken(found))
        guardrail = found.guardrail | dict.fromkeys(without)
        return {"state": State.RUNNING, "reason": "", "guardrail": guardrail}

    return _change(rollout, "resume", actor, go_on, "resumed", without=without)


def roll_back(rollout: Rollout, actor: audit.Actor, reason: str = "") -> Rollout:
    """Return all new sessions to the previous version immediately; running sessions keep theirs.

    Raises CannotRollOut.
    """

    def back(found: Rollout) -> dict[str, Any]:
        if found.state == State.COMPLETE:
            _make_active(found.team, found.before)
        return {"state": State.ROLLED_BACK, "reason": _reason(reason)}

    return _change(rollout, "roll_back", actor, back, "rolled_back")


def broken(rollout: Rollout) -> list[str]:
    """Names of the enabled limits that the last check found exceeded."""
    found = rollout.found.get("bounds", {})
    on = [name for name, bound in rollout.guardrail.items() if bound is not None]
    return [name for name in on if found.get(name, {}).get("state") == "broken"]


def _make_active(team: Team, version: PolicyVersion | None) -> None:
    team.active = version
    team.save(update_fields=["active"])


def _reason(text: str) -> str:
    return text.replace("\x00", "").strip()[:REASON_LENGTH]


def _locked(team: Team) -> Team:
    """Lock the team's row so that its rollouts change one at a time. Sessions can still be created,
    because they only refer to it."""
    return Team.objects.select_for_update(no_key=True).get(pk=team.pk)


def _change(
    rollout: Rollout,
    act: Act,
    actor: audit.Actor,
    values: Callable[[Rollout], Mapping[str, Any]],
    action: str,
    **detail: Any,
) -> Rollout:
    """Apply one change to the state and share that the caller saw, with its audit entry."""
    with transaction.atomic():
        team = _locked(rollout.team)
        found = Rollout.objects.select_related("version__policy", "before__policy").get(
            pk=rollout.pk
        )
        found.team = team
        # The guardrail and commands need no permission.
        asks = actor.via in (AuditEntry.Via.PERSON, AuditEntry.Via.KEY)
        if asks and (refusal := may_not(found, act, actor.user)):
            raise MayNot(refusal)
        if refusal := not_now(found, act):
            raise CannotRollOut(refusal)
        seen = {"state": rollout.state, "share": rollout.share}
        new = {**values(found), "changed": timezone.now()}
        if not Rollout.objects.filter(pk=found.pk, **seen).update(**new):
            raise CannotRollOut("Someone else changed the rollout. Reload and try again.")
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
