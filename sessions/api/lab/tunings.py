"""Searches for better policies: queue, get, cancel."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from sessions.access import actor_of, require, team_to, teams_of
from sessions.actions.jobs import jobs
from sessions.actions.lab import tunings
from sessions.actions.lab.choices import NoChoice
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.api.jobs.jobs import job_asked
from sessions.api.lab import shapes
from sessions.api.lab.choices import refused
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Tuning
from sessions.models.lab.tuned import Found, found_by

router = Router(tags=["Lab"])


@router.post("tunings", response={202: shapes.TuningAsked}, url_name="tunings")
@done_once
def ask(request: HttpRequest, wanted: shapes.TuningIn) -> HttpResponse:
    """Queue a search: simulate variants of a policy on recorded sessions, then variants of the
    best, until `trials` are tried."""
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


@router.get("tunings/{uuid:tuning_id}", response=shapes.TuningOut, url_name="tuning")
def tuning(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Get the trials of a search so far; figures are simulated, shares are of the recorded
    baseline."""
    return json_answer(tuning_body(tuning_of(request, tuning_id)))


@router.post("tunings/{uuid:tuning_id}/cancel", response=shapes.TuningOut, url_name="tuning_cancel")
def cancel(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Cancel a search; its results so far are kept. No effect if it had ended."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    if found.job is not None:
        jobs.cancel(found.job)
    return json_answer(tuning_body(tuning_of(request, tuning_id)))


def tuning_of(request: HttpRequest, tuning_id: UUID) -> Tuning:
    """A search of the requester's teams; others look missing."""
    rows = Tuning.objects.filter(team__in=teams_of(request))
    named = rows.select_related("team", "job", "author", "base__policy")
    found = named.filter(pk=tuning_id).first()
    if found is None:
        raise Http404("no such search")
    return found


def tuning_body(tuning: Tuning) -> dict[str, Any]:
    """A search with all its trials, in order."""
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
        "recorded": tuning.recorded,
        "trials": [_trial(one) for one in found_by(tuning)],
    }


def state_of(tuning: Tuning) -> str:
    """The state of its job, or "done" if the job was deleted."""
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
