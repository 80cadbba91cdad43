"""Demo: a policy of the team's own, and a simulation of it over the demo's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError

from sessions.actions import audit, jobs, simulations
from sessions.actions.attempts import attempt
from sessions.actions.policies import named_version, save_version
from sessions.models import Job, Policy, Session, Simulation, Team

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


def tune_demo(team: Team, sessions: Sequence[Session]) -> Simulation | None:
    """Save the policy and ask for its simulation over these sessions, which a job then does.

    None where there are none, or where the team has a policy of its own by that name.
    """
    versions = Policy.objects.filter(team=team, name=NAME).values_list("versions__note", flat=True)
    if not sessions or set(versions) - {NOTE}:
        return None
    draft = save_version(team, NAME, DOCUMENT, BASE, NOTE, None, audit.COMMAND)
    chosen = {"by": "hand", "ids": [str(session.pk) for session in sessions]}
    others = [named_version(team, "sliding-window")]
    return simulations.ask(team, chosen, draft, others, NOTE, audit.COMMAND)


def simulate_now(simulation: Simulation) -> None:
    """Do the simulation's job in this process, unless a worker has it already."""
    job = jobs.claim(simulation.job_id) if simulation.job_id else None
    if job is not None and job.token is not None:
        attempt(job.pk, job.token)


def untune_demo(team: Team) -> None:
    """Delete the simulation, its job, and the policy unless somebody has gone on from it."""
    made = Simulation.objects.for_team(team).filter(note=NOTE)
    Job.objects.filter(simulations__in=made).delete()
    made.delete()
    for policy in Policy.objects.filter(team=team, name=NAME):
        if policy.versions.exclude(note=NOTE).exists():
            continue
        try:
            with transaction.atomic():
                policy.delete()
        except ProtectedError:
            continue  # a rollout, a session or another simulation rests on it
