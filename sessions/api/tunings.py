"""Searches for better policies: asked for, followed, ended, and what they found."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from sessions.actions import jobs, tunings
from sessions.actions.choices import NoChoice
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.api import incoming, shapes
from sessions.api.access import actor_of, require, team_to, teams_of
from sessions.api.answers import done_once, told
from sessions.api.curves import refused
from sessions.api.jobs import job_asked
from sessions.api.problems import Refusal
from sessions.models import Tuning
from sessions.models.tuned import Found, found_by

router = Router(tags=["Lab"])


@router.post("tunings", response={202: shapes.TuningAsked}, url_name="tunings")
@done_once
def ask(request: HttpRequest, wanted: incoming.TuningWanted) -> HttpResponse:
    """Asks for a search: policies near a given one are simulated on recorded sessions, those near
    the best of them next, until `trials` were tried. Nothing else changes by it."""
    team = team_to(request, "write")
    try:
        base = named_version(team, wanted.base)
    except UnknownPolicy as error:
        raise Refusal(422, "No such policy", f"{wanted.base!r} {error}.", field="/base") from None
    choice = wanted.sessions.dict(exclude_none=True)
    try:
        made = tunings.ask(base, choice, wanted.objective, wanted.trials, actor_of(request))
    except NoChoice as error:
        raise refused(error, "/sessions/") from None
    assert made.job is not None
    address = request.build_absolute_uri(reverse("tuning", args=[made.pk]))
    return job_asked(made.job, tuning=str(made.pk), url=address)


@router.get("tunings/{uuid:tuning_id}", response=shapes.TuningTold, url_name="tuning")
def tuning(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Tells what a search tried so far; figures are simulated, shares are of what was recorded."""
    return told(tuning_body(tuning_of(request, tuning_id)))


@router.post(
    "tunings/{uuid:tuning_id}/cancel", response=shapes.TuningTold, url_name="tuning_cancel"
)
def cancel(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Ends a search; what it found stays. One that had ended stays as it was."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    if found.job is not None:
        jobs.cancel(found.job)
    return told(tuning_body(tuning_of(request, tuning_id)))


def tuning_of(request: HttpRequest, tuning_id: UUID) -> Tuning:
    """A search of one of the asker's teams; a foreign one is missing."""
    rows = Tuning.objects.filter(team__in=teams_of(request))
    named = rows.select_related("team", "job", "author", "base__policy")
    found = named.filter(pk=tuning_id).first()
    if found is None:
        raise Http404("no such search")
    return found


def tuning_body(tuning: Tuning) -> dict[str, Any]:
    """A search with all that it tried, in the order of trials."""
    return {
        "id": str(tuning.pk),
        "state": state_of(tuning),
        "base": str(tuning.base),
        "objective": tuning.objective,
        "basis": "simulated",
        "sessions": len(tuning.sessions),
        "held": len(tuning.held),
        "limit": tuning.limit,
        "created": tuning.created.isoformat(),
        "job": str(tuning.job_id) if tuning.job_id else None,
        "problem": tuning.job.problem if tuning.job else None,
        "trials": [_trial(one) for one in found_by(tuning)],
    }


def state_of(tuning: Tuning) -> str:
    """The state of its job; of one whose job was cleared away, done."""
    return tuning.job.state if tuning.job else "done"


def _trial(found: Found) -> dict[str, Any]:
    trial = found.trial
    return {
        "number": trial.number,
        "name": trial.name,
        "on_frontier": found.best,
        "document": trial.document,
        "like": found.like,
        "changes": [
            {"path": one.path, "name": one.name, "before": one.before, "after": one.after}
            for one in found.changes
        ],
        "figures": trial.figures,
        "cost": found.outcome.cost,
        "tokens": found.outcome.tokens,
        "held": trial.held,
        "bad_held": list(found.bad_held),
    }
