"""Rollouts: proposed by programs or people; started and rolled back by people only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Query, Router

from sessions.access import actor_of, require, team_to, teams_of
from sessions.actions.policies import rollouts as actions
from sessions.actions.policies.bounds import guardrail_of
from sessions.actions.policies.guardrails import findings_of
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.actions.policies.rollouts import CannotRollOut, MayNot
from sessions.api.policies.rollout_shapes import (
    ReasonIn,
    RolloutIn,
    RolloutList,
    RolloutOut,
    RolloutSeen,
    StageIn,
)
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Rollout, Simulation, Team
from sessions.models.policies.rollouts import rollout_of_teams

ROWS_AT_ONCE = 200

router = Router(tags=["Policies"])


def describe_rollout(request: HttpRequest, rollout: Rollout) -> dict[str, Any]:
    """A rollout as JSON."""
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
    state: str = Query("", max_length=12, description="only rollouts in this state"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List rollouts, newest first."""
    rows = Rollout.objects.filter(team__in=teams_of(request)).select_related(
        "version__policy", "before__policy", "proposed_by", "decided_by"
    )
    if state:
        rows = rows.filter(state=state.replace("\x00", "\ufffd"))
    found = rows.order_by("-created", "-pk")[:limit]
    return json_answer({"rollouts": [describe_rollout(request, row) for row in found]})


@router.post("rollouts", response={201: RolloutOut}, url_name="rollouts")
@done_once
def propose(request: HttpRequest, wanted: RolloutIn) -> HttpResponse:
    """Propose a version for the team's new sessions; a person accepts or declines it.

    409 if it is already active or being rolled out.
    """
    team = team_to(request, "write")
    try:
        version = named_version(team, wanted.version)
    except UnknownPolicy as error:
        raise Refusal(
            422, "No such policy", f"{wanted.version!r} {error}.", field="/version"
        ) from None
    bounds = guardrail_of(wanted.guardrail.dict() if wanted.guardrail else {})
    simulation = _simulation(team, wanted.simulation)
    try:
        made = actions.propose(version, wanted.note, bounds, actor_of(request), simulation)
    except CannotRollOut as error:
        status = 422 if error.field == "simulation" else 409
        field = f"/{error.field}" if error.field else None
        raise Refusal(status, "Cannot be proposed", str(error), field=field) from None
    return json_answer(describe_rollout(request, made), 201)


def _simulation(team: Team, name: str | None) -> Simulation | None:
    if name is None:
        return None
    try:
        found = Simulation.objects.for_team(team).filter(pk=UUID(name)).first()
    except ValueError:
        found = None
    if found is None:
        raise Refusal(
            422,
            "No such simulation",
            "The team has no simulation with that id. Check the id.",
            field="/simulation",
        )
    return found


def _found(request: HttpRequest, rollout_id: UUID) -> Rollout:
    found = rollout_of_teams(teams_of(request), rollout_id)
    if found is None:
        raise Http404("no such rollout")
    return found


@router.get("rollouts/{uuid:rollout_id}", response=RolloutSeen, url_name="rollout")
def rollout(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Get a rollout with its current figures."""
    found = _found(request, rollout_id)
    seen = findings_of(found)
    sides = {"new": asdict(seen.new), "other": asdict(seen.other)}
    bounds = [asdict(one) for one in seen.bounds]
    return json_answer(describe_rollout(request, found) | sides | {"bounds": bounds})


Change = Callable[[Rollout], Rollout]


def _done(request: HttpRequest, rollout_id: UUID, change: Change) -> HttpResponse:
    found = _found(request, rollout_id)
    require(request, found.team, "accept")
    return json_answer(describe_rollout(request, _changed(found, change)))


def _changed(rollout: Rollout, change: Change) -> Rollout:
    try:
        return change(rollout)
    except MayNot as error:
        raise Refusal(403, "Not allowed", str(error)) from None
    except CannotRollOut as error:
        field = f"/{error.field}" if error.field else None
        raise Refusal(409, "Conflict", str(error), field=field) from None


@router.post("rollouts/{uuid:rollout_id}/accept", response=RolloutOut, url_name="rollout_accept")
@done_once
def accept(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Start a rollout with 10 % of new sessions.

    For people only; the proposer cannot accept unless they own the team.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.accept(found, actor))


@router.post("rollouts/{uuid:rollout_id}/decline", response=RolloutOut, url_name="rollout_decline")
@done_once
def decline(request: HttpRequest, rollout_id: UUID, wanted: ReasonIn = Body(None)) -> HttpResponse:
    """Decline a proposal. For people only."""
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.decline(found, actor, reason))


@router.post("rollouts/{uuid:rollout_id}/widen", response=RolloutOut, url_name="rollout_widen")
@done_once
def widen(request: HttpRequest, rollout_id: UUID, wanted: StageIn) -> HttpResponse:
    """Widen a rollout to 50 %, then to 100 %, which completes it. For people only.

    409 if `share` is not the next stage, for example because someone else widened it.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.widen(found, wanted.share, actor))


@router.post("rollouts/{uuid:rollout_id}/pause", response=RolloutOut, url_name="rollout_pause")
@done_once
def pause(request: HttpRequest, rollout_id: UUID, wanted: ReasonIn = Body(None)) -> HttpResponse:
    """Pause a rollout: no new session uses it. For people only."""
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.pause(found, actor, reason))


@router.post("rollouts/{uuid:rollout_id}/resume", response=RolloutOut, url_name="rollout_resume")
@done_once
def resume(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Resume a paused rollout, with exceeded limits turned off.

    For people only.
    """
    actor = actor_of(request)
    return _done(request, rollout_id, lambda found: actions.resume(found, actor))


@router.post(
    "rollouts/{uuid:rollout_id}/roll_back", response=RolloutOut, url_name="rollout_roll_back"
)
@done_once
def roll_back(
    request: HttpRequest, rollout_id: UUID, wanted: ReasonIn = Body(None)
) -> HttpResponse:
    """Return new sessions to the previous version, immediately; running sessions keep theirs.

    For people only.
    """
    actor, reason = actor_of(request), _reason(wanted)
    return _done(request, rollout_id, lambda found: actions.roll_back(found, actor, reason))


def _reason(wanted: ReasonIn | None) -> str:
    return wanted.reason if wanted else ""
