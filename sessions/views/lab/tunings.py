"""A search for better policies: started from the lab; its frontier and trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from compaction.policies.policy import InvalidPolicy
from sessions.access import actor_of, allowed, require, team_to
from sessions.actions.jobs import jobs
from sessions.actions.lab import tunings
from sessions.actions.lab.choices import NoChoice
from sessions.actions.policies.policies import UnknownPolicy, named_version
from sessions.api.lab.tunings import state_of, tuning_of
from sessions.models import Tuning
from sessions.models.lab.tuned import Found, found_by, objective_of
from sessions.views.lab.lab import lab_page
from sessions.views.web.pages import Page

TRIED_FIRST = 12
"""Trials off the frontier listed at first, newest first."""


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Start a search over a sample of sessions with a minimum number of steps, and show it."""
    team = team_to(request, "write")
    objective = "lean" if request.POST.get("objective") == "lean" else "cheap"
    choice = {"by": "sample", "n": _whole(request, "n"), "min_steps": _whole(request, "min_steps")}
    trials = _whole(request, "trials") or tunings.TRIALS
    try:
        base = named_version(team, request.POST.get("base", ""))
        made = tunings.ask(base, choice, objective, max(trials, 1), actor_of(request))
    except UnknownPolicy as error:
        return lab_page(request, f"The starting policy {error}.")
    except NoChoice as error:
        return lab_page(request, str(error))
    return redirect("tuning", made.pk)


def _whole(request: HttpRequest, name: str) -> int | None:
    given = request.POST.get(name, "").strip()
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


@require_GET
def tuning(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Show a search at its permanent URL; the page follows its progress."""
    return _shown(request, tuning_of(request, tuning_id))


def _shown(
    request: HttpRequest, found: Tuning, problem: tuple[int, str] | None = None
) -> HttpResponse:
    tried = found_by(found)
    ordered = sorted(tried, key=lambda one: one.outcome.spent(objective_of(found)))
    rest = [one for one in reversed(tried) if not one.best]
    props = _scatter(found, tried)
    context = {
        "section": "lab",
        "team": found.team,
        "tuning": found,
        "state": state_of(found),
        "running": found.job is not None and not found.job.is_finished,
        "may_write": allowed(request, found.team, "write"),
        "best": [one for one in ordered if one.offered],
        "fell": [one for one in ordered if one.best and not one.offered],
        "rest": rest[:TRIED_FIRST],
        "more": rest[TRIED_FIRST:],
        "others": len(rest),
        "tried": len(tried),
        "props": props,
        "problem": problem,
        "priced": any(one.outcome.cost is not None for one in tried),
    }
    return render(request, "lab/tuning.html", context, status=422 if problem else 200)


def _scatter(found: Tuning, tried: Sequence[Found]) -> dict[str, Any]:
    """Props of the scatter chart: the objective against recall."""
    lean = found.objective == "lean" or all(one.outcome.cost is None for one in tried)
    spent = "tokens sent, vs. recorded" if lean else "cost, vs. recorded"
    return {
        "title": f"{spent.partition(',')[0].capitalize()} against recall",
        "x": {"label": spent, "unit": "share"},
        "y": {"label": "recall", "unit": "share"},
        "points": [
            {
                "x": one.outcome.tokens if lean else one.outcome.cost,
                "y": one.outcome.in_context,
                "label": one.trial.name or f"{one.trial.number}",
                "group": _group(one),
                "here": one.offered,
                "url": f"#trial-{one.trial.number}",
            }
            for one in tried
            if lean or one.outcome.cost is not None
        ]
        + _recorded_point(found),
        "groups": [
            {"name": "frontier", "shape": "diamond", "means": "Not beaten by any other trial"},
            {
                "name": "worse on held-out",
                "shape": "triangle",
                "means": "On the frontier, but worse on held-out sessions",
            },
            {"name": "begun with", "shape": "square", "means": "The version and the presets"},
            {"name": "tried", "shape": "circle"},
            {"name": "recorded", "shape": "ring", "means": "The sessions as recorded"},
        ],
        "basis": "simulated",
        "line": "here",
        "note": f"Over the {len(found.sessions)} sessions used by the search. Policies that lose "
        "more than 0.5 % of needed facts are not on the frontier.",
    }


def _recorded_point(found: Tuning) -> list[dict[str, Any]]:
    recall = (found.recorded or {}).get("in_context")
    if recall is None:
        return []
    return [{"x": 1, "y": recall, "label": "recorded", "group": "recorded", "bound": True}]


def _group(one: Found) -> str:
    if one.best:
        return "frontier" if one.offered else "worse on held-out"
    return "begun with" if one.trial.name else "tried"


@require_POST
def cancel(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Cancel a running search; its results so far are kept."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    if found.job is not None:
        jobs.cancel(found.job)
    return redirect("tuning", found.pk)


@require_POST
def save(request: HttpRequest, tuning_id: UUID, number: int) -> HttpResponse:
    """Save a trial as a version of the team's own policy, and show it."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    trial = get_object_or_404(found.trials, number=number)
    try:
        version = tunings.save_trial(trial, request.POST.get("name", "").strip(), actor_of(request))
    except InvalidPolicy as error:
        return _shown(request, found, (number, f"The name {error.problem}."))
    return redirect("policy_version", version.policy.name, version.number)


PAGES = (
    Page(route="lab/searches/", view=ask, name="tunings", needs={"POST": "write"}),
    Page(route="lab/searches/<uuid:tuning_id>/", view=tuning, name="tuning"),
    Page(
        route="lab/searches/<uuid:tuning_id>/cancel/",
        view=cancel,
        name="tuning_cancel",
        needs={"POST": "write"},
    ),
    Page(
        route="lab/searches/<uuid:tuning_id>/trials/<int:number>/save/",
        view=save,
        name="tuning_save",
        needs={"POST": "write"},
    ),
)
