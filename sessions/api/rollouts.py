"""Rollouts: proposed by programs and people, let out and taken back by people alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Query, Router

from sessions.actions import rollouts as actions
from sessions.actions.bounds import guardrail_of
from sessions.actions.guardrails import findings_of
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.actions.rollouts import CannotRollOut, MayNot
from sessions.api.access import actor_of, require, team_to, teams_of
from sessions.api.answers import done_once, told
from sessions.api.problems import Refusal
from sessions.api.rollout_shapes import (
    ReasonWanted,
    RolloutList,
    RolloutSeen,
    RolloutTold,
    RolloutWanted,
    StageWanted,
)
from sessions.models import Rollout, Simulation, Team
from sessions.models.rollouts import rollout_of_teams

ROWS_AT_ONCE = 200

router = Router(tags=["Policies"])


def rollout_told(request: HttpRequest, rollout: Rollout) -> dict[str, Any]:
    """A rollout as the API tells it."""
    return {
        "id": str(rollout.pk),
        "version": str(rollout.version),
        "before": str(rollout.before) if rollout.before else None,
        "state": rollout.state,
        "share": rollout.share,
        "note": rollout.note,
        "reason": rollout.reason,
        "guardrail": rollout.guardrail,
        "simulation": str(rollout.simulation_id) if rollout.simulation_id else None,
        "proposed_by": actions.title(rollout.proposed_by),
        "decided_by": actions.title(rollout.decided_by),
        "created": rollout.created.isoformat(),
        "began": rollout.began.isoformat() if rollout.began else None,
        "changed": rollout.changed.isoformat(),
        "url": request.build_absolute_uri(reverse("rollout", args=[rollout.pk])),
    }


@router.get("rollouts", response=RolloutList, url_name="rollouts")
def rollouts(
    request: HttpRequest,
    state: str = Query("", max_length=12, description="only those in that state"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """Lists rollouts, the newest first."""
    rows = Rollout.objects.filter(team__in=teams_of(request)).select_related(
        "version__policy", "before__policy", "proposed_by", "decided_by"
    )
    if state:
        rows = rows.filter(state=state.replace("\x00", "\ufffd"))
    found = rows.order_by("-created", "-pk")[:limit]
    return told({"rollouts": [rollout_told(request, row) for row in found]})


@router.post("rollouts", response={201: RolloutTold}, url_name="rollouts")
@done_once
def propose(request: HttpRequest, wanted: RolloutWanted) -> HttpResponse:
    """Proposes a version for the team's new sessions; a person accepts it, or does not.

    409 where new sessions begin with it already, or it is under way.
    """
    team = team_to(request, "write")
    try:
        version = named_version(team, wanted.version)
    except UnknownPolicy as error:
        raise Refusal(422, "No such policy", f"It {error}.", field="/version") from None
    bounds = guardrail_of(wanted.guardrail.dict() if wanted.guardrail else {})
    simulation = _simulation(team, wanted.simulation)
    try:
        made = actions.propose(version, wanted.note, bounds, actor_of(request), simulation)
    except CannotRollOut as error:
        status = 422 if error.field == "simulation" else 409
        field = f"/{error.field}" if error.field else None
        raise Refusal(status, "Cannot be proposed", str(error), field=field) from None
    return told(rollout_told(request, made), 201)


def _simulation(team: Team, name: str | None) -> Simulation | None:
    if name is None:
        return None
    try:
        found = Simulation.objects.for_team(team).filter(pk=UUID(name)).first()
    except ValueError:
        found = None
    if found is None:
        raise Refusal(
            422, "No such simulation", "The team has none of that id.", field="/simulation"
        )
    return found


def _found(request: HttpRequest, rollout_id: UUID) -> Rollout:
    found = rollout_of_teams(teams_of(request), rollout_id)
    if found is None:
        raise Http404("no such rollout")
    return found


@router.get("rollouts/{uuid:rollout_id}", response=RolloutSeen, url_name="rollout")
def rollout(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Tells how a rollout stands, and what the sessions of both sides have come to by now."""
    found = _found(request, rollout_id)
    seen = findings_of(found)
    sides = {"new": asdict(seen.new), "other": asdict(seen.other)}
    bounds = [asdict(one) for one in seen.bounds]
    return told(rollout_told(request, found) | sides | {"bounds": bounds})


Change = Callable[[Rollout], Rollout]


def _done(request: HttpRequest, rollout_id: UUID, change: Change) -> HttpResponse:
    found = _found(request, rollout_id)
    require(request, found.team, "accept")
    return told(rollout_told(request, _changed(found, change)))


def _changed(rollout: Rollout, change: Change) -> Rollout:
    try:
        return change(rollout)
    except MayNot as error:
        raise Refusal(403, "Not allowed", str(error)) from None
    except CannotRollOut as error:
        field = f"/{error.field}" if error.field else None
        raise Refusal(409, "Not as things stand", str(error), field=field) from None


@router.post("rollouts/{uuid:rollout_id}/accept", response=RolloutTold, url_name="rollout_accept")
@done_once
def accept(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Lets 10 % of the new sessions begin with it.

    For people: not with a key, and not for who proposed it, unless he owns the team.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.accept(found, actor))


@router.post("rollouts/{uuid:rollout_id}/decline", response=RolloutTold, url_name="rollout_decline")
@done_once
def decline(
    request: HttpRequest, rollout_id: UUID, wanted: ReasonWanted = Body(None)
) -> HttpResponse:
    """Refuses what was proposed. For people, not with a key."""
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.decline(found, actor, reason))


@router.post("rollouts/{uuid:rollout_id}/widen", response=RolloutTold, url_name="rollout_widen")
@done_once
def widen(request: HttpRequest, rollout_id: UUID, wanted: StageWanted) -> HttpResponse:
    """Brings it to 50 %, and from there to 100 %, where it is complete. For people, not with a key.

    409 for a share that does not come next: somebody may have widened it meanwhile.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.widen(found, wanted.share, actor))


@router.post("rollouts/{uuid:rollout_id}/pause", response=RolloutTold, url_name="rollout_pause")
@done_once
def pause(
    request: HttpRequest, rollout_id: UUID, wanted: ReasonWanted = Body(None)
) -> HttpResponse:
    """Lets no further session begin with it for now. For people, not with a key."""
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.pause(found, actor, reason))


@router.post("rollouts/{uuid:rollout_id}/resume", response=RolloutTold, url_name="rollout_resume")
@done_once
def resume(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Goes on where it paused; bounds that are broken are off from then on.

    For people, not with a key.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.resume(found, actor))


@router.post(
    "rollouts/{uuid:rollout_id}/roll_back", response=RolloutTold, url_name="rollout_roll_back"
)
@done_once
def roll_back(
    request: HttpRequest, rollout_id: UUID, wanted: ReasonWanted = Body(None)
) -> HttpResponse:
    """Lets all new sessions begin at once with what there was before; running ones keep theirs.

    For people, not with a key.
    """
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.roll_back(found, actor, reason))


def _reason(wanted: ReasonWanted | None) -> str:
    return wanted.reason if wanted else ""
