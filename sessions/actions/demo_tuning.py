"""Demo: a policy of the team's own, and a simulation of it over the demo's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError

from sessions.actions import audit, jobs, simulations, tunings
from sessions.actions.attempts import attempt
from sessions.actions.policies import named_version, save_version
from sessions.models import Job, Policy, PolicyVersion, Session, Simulation, Team, Tuning

NAME = "careful"
BASE = "offload-first"
NOTE = "Of the demo: leaves results in place for longer, and keeps failures."
DOCUMENT: dict[str, Any] = {
    "steps": [
        {"strategy": "dedupe"},
        {"strategy": "outline"},
        {"strategy": "offload", "parameters": {"age": 10, "batch": 10}},
        {"strategy": "compact", "parameters": {"trigger": 0.8, "keep_failures": True}},
    ]
}
"""What it does not say is as in its base."""

POLICIES = 32
"""That the search tries: the presets, and some generations after them."""

LONGEST = 120
"""Steps of a session that is searched over: a trial of a longer one takes too long to wait for."""

LIVE_KINDS = ("tend", "share", "assess")
"""Jobs that follow from what agents report."""


def tune_demo(team: Team, sessions: Sequence[Session]) -> Simulation | None:
    """Save the policy, and ask for its simulation over these sessions and for a search that begins
    from it, which jobs then do.

    None where there are none, or where the team has a policy of its own by that name.
    """
    versions = Policy.objects.filter(team=team, name=NAME).values_list("versions__note", flat=True)
    if not sessions or set(versions) - {NOTE}:
        return None
    draft = save_version(team, NAME, DOCUMENT, BASE, NOTE, None, audit.COMMAND)
    chosen = {"by": "hand", "ids": [str(session.pk) for session in sessions]}
    others = [named_version(team, "sliding-window")]
    _search(draft, sessions)
    return simulations.ask(team, chosen, draft, others, NOTE, audit.COMMAND)


def _search(draft: PolicyVersion, sessions: Sequence[Session]) -> None:
    short = [str(one.pk) for one in sessions if one.step_count <= LONGEST and not one.parent_id]
    if short:
        tunings.ask(draft, {"by": "hand", "ids": short}, "cheap", POLICIES, audit.COMMAND)


def work_now(team: Team) -> None:
    """Do in this process what the demo asked workers for, unless one has it already."""
    kinds = (simulations.KIND, tunings.KIND, *LIVE_KINDS)
    seen: set[Any] = set()
    while waiting := _waiting(team, kinds, seen):
        seen.add(waiting.pk)
        job = jobs.claim(waiting.pk)
        if job is not None and job.token is not None:
            attempt(job.pk, job.token)


def _waiting(team: Team, kinds: Sequence[str], seen: set[Any]) -> Job | None:
    rows = Job.objects.for_team(team).filter(kind__in=kinds, state=Job.State.QUEUED)
    return rows.exclude(pk__in=seen).order_by("created").first()


def untune_demo(team: Team) -> None:
    """Delete the simulation, the search, their jobs, and the policy unless somebody has gone on
    from it."""
    for made in (
        Simulation.objects.for_team(team).filter(note=NOTE),
        Tuning.objects.for_team(team).filter(
            base__policy__name=NAME, base__note=NOTE, author=None, limit=POLICIES
        ),
    ):
        Job.objects.filter(pk__in=list(made.values_list("job_id", flat=True))).delete()
        made.delete()
    for policy in Policy.objects.filter(team=team, name=NAME):
        if policy.versions.exclude(note=NOTE).exists():
            continue
        try:
            with transaction.atomic():
                policy.delete()
        except ProtectedError:
            continue  # a rollout, a session or another simulation rests on it
