"""Demo policy, with a simulation and a search over the demo sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError

from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.lab import simulations, tunings
from sessions.actions.policies.policies import named_version, save_version
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
"""Settings not given here come from its base."""

POLICIES = 32
"""Policies for the search to try: the presets and a few generations."""

LONGEST = 120
"""Maximum steps of a session in the search, because trials of longer ones take too long."""

LIVE_KINDS = ("tend", "share", "assess")
"""Jobs caused by messages of live agents."""


def tune_demo(team: Team, sessions: Sequence[Session]) -> Simulation | None:
    """Save the demo policy and queue its simulation and search over these sessions.

    Returns None without sessions, or if the team has its own policy with that name.
    """
    versions = Policy.objects.filter(team=team, name=NAME).values_list("versions__note", flat=True)
    if not sessions or set(versions) - {NOTE}:
        return None
    draft = save_version(team, NAME, DOCUMENT, BASE, NOTE, None, audit.DEMO)
    chosen = {"by": "hand", "ids": [str(session.pk) for session in sessions]}
    others = [named_version(team, "sliding-window")]
    _search(draft, sessions)
    return simulations.ask(team, chosen, draft, others, NOTE, audit.DEMO)


def _search(draft: PolicyVersion, sessions: Sequence[Session]) -> None:
    short = [str(one.pk) for one in sessions if one.step_count <= LONGEST and not one.parent_id]
    if short:
        tunings.ask(draft, {"by": "hand", "ids": short}, "cheap", POLICIES, audit.DEMO)


def is_of_demo(policy: Policy) -> bool:
    """Whether a policy is the demo's, as the demo made it."""
    return policy.name == NAME and not policy.versions.exclude(note=NOTE).exists()


def work_now(team: Team) -> None:
    """Run the demo's queued jobs in this process, except those a worker has claimed."""
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
    """Delete the simulation, the search, their jobs, and the policy unless someone has changed
    it."""
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
            continue  # used by a rollout, a session or another simulation
