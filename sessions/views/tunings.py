"""A search for better policies: asked for from the lab, its frontier, and what it tried."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from compaction.policies.policy import InvalidPolicy
from sessions.actions import jobs, tunings
from sessions.actions.choices import NoChoice
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.api.access import actor_of, allowed, require, team_to
from sessions.api.tunings import state_of, tuning_of
from sessions.models import Tuning
from sessions.models.tuned import Found, found_by, objective_of
from sessions.views.lab import lab_page

TRIED_FIRST = 12
"""Trials off the frontier that the page lists at once, the newest first."""


@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Asks for a search over the newest sessions of so many steps, and shows it."""
    team = team_to(request, "write")
    objective = "lean" if request.POST.get("objective") == "lean" else "cheap"
    choice = {"by": "sample", "n": _whole(request, "n"), "min_steps": _whole(request, "min_steps")}
    trials = _whole(request, "trials") or tunings.TRIALS
    try:
        base = named_version(team, request.POST.get("base", ""))
        made = tunings.ask(base, choice, objective, max(trials, 1), actor_of(request))
    except UnknownPolicy as error:
        return lab_page(request, f"The policy to begin from {error}.")
    except NoChoice as error:
        return lab_page(request, str(error))
    return redirect("tuning", made.pk)


def _whole(request: HttpRequest, name: str) -> int | None:
    given = request.POST.get(name, "").strip()
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


@require_GET
def tuning(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """The permanent address of a search, followed while it is under way."""
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
        "same": hashlib.sha256(json.dumps(props).encode()).hexdigest()[:16],
        "problem": problem,
        "priced": any(one.outcome.cost is not None for one in tried),
    }
    return render(request, "lab/tuning.html", context, status=422 if problem else 200)


def _scatter(found: Tuning, tried: Sequence[Found]) -> dict[str, Any]:
    """Props of the chart: what is to be little against needs in place."""
    lean = found.objective == "lean" or all(one.outcome.cost is None for one in tried)
    spent = "tokens sent, of recorded" if lean else "cost, of recorded"
    return {
        "title": f"{spent.partition(',')[0].capitalize()} against needs in place",
        "x": {"label": spent, "unit": "share"},
        "y": {"label": "needs in place", "unit": "share"},
        "points": [
            {
                "x": one.outcome.tokens if lean else one.outcome.cost,
                "y": one.outcome.in_place,
                "label": one.trial.name or f"{one.trial.number}",
                "group": _group(one),
                "here": one.offered,
                "url": f"#trial-{one.trial.number}",
            }
            for one in tried
            if lean or one.outcome.cost is not None
        ],
        "groups": [
            {"name": "frontier", "shape": "diamond", "means": "Nothing that was tried beats it"},
            {
                "name": "bad on held",
                "shape": "triangle",
                "means": "On the frontier of the search alone",
            },
            {"name": "begun with", "shape": "square", "means": "The version and the presets"},
            {"name": "tried", "shape": "circle"},
        ],
        "basis": "simulated",
        "line": "here",
        "note": f"Over the {len(found.sessions)} sessions that the search looks at. Policies that "
        "lose over 0.5 % of what was needed are not on the frontier.",
    }


def _group(one: Found) -> str:
    if one.best:
        return "frontier" if one.offered else "bad on held"
    return "begun with" if one.trial.name else "tried"


@require_POST
def cancel(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """Ends a search that is under way; what it found stays."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    if found.job is not None:
        jobs.cancel(found.job)
    return redirect("tuning", found.pk)


@require_POST
def save(request: HttpRequest, tuning_id: UUID, number: int) -> HttpResponse:
    """Saves what was tried as a version of the team's own policy, and shows that."""
    found = tuning_of(request, tuning_id)
    require(request, found.team, "write")
    trial = get_object_or_404(found.trials, number=number)
    try:
        version = tunings.save_trial(trial, request.POST.get("name", "").strip(), actor_of(request))
    except InvalidPolicy as error:
        return _shown(request, found, (number, f"The name {error.problem}."))
    return redirect("policy_version", version.policy.name, version.number)
