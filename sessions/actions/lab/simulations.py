"""Simulations of policy versions over selected sessions: create, run, cancel."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import Error, transaction

from compaction.policies.policy import InvalidPolicy, Policy, from_dict
from compaction.simulation.recording import Recording
from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.lab.choices import chosen_sessions, read_choice
from sessions.actions.lab.simulated_figures import (
    figures_of,
    recorded_figures,
    recording_of,
    state_of,
)
from sessions.actions.policies.policies import active_version
from sessions.models import PolicyVersion, Run, Session, Simulation, SimulationResult, Team
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import MissingBlob

log = logging.getLogger(__name__)

KIND = "simulation"
"""The kind of its job."""

MOST_OTHERS = 16
"""Maximum number of versions besides the draft and the active one: the presets, and as many of a
team's own as one reads side by side."""

SMALL_FIRST = 5
"""Number of small sessions to simulate first, for quick results. The rest keep their order, so that
later partial results are not biased towards small sessions."""


def ask(
    team: Team,
    choice: Mapping[str, Any],
    draft: PolicyVersion,
    others: Sequence[PolicyVersion],
    note: str,
    actor: audit.Actor,
) -> Simulation:
    """Create a simulation of the draft, the team's active version and others, and queue its job.
    Raises NoChoice, and ValueError for too many versions."""
    chosen = read_choice(choice)
    sessions = chosen_sessions(team, chosen)
    active = active_version(team)
    versions = list(dict.fromkeys([draft, active, *others]))
    if len(versions) > MOST_OTHERS + 2:
        raise ValueError(
            f"Too many versions. Compare at most {MOST_OTHERS} others in one simulation."
        )
    with transaction.atomic():
        simulation = Simulation.objects.create(
            team=team,
            author=actor.user,
            note=note[:300],
            chosen=chosen,
            sessions=[str(session.pk) for session in small_first(sessions)],
            draft=draft,
            active=active,
        )
        simulation.versions.set(versions)
        simulation.job = jobs.enqueue(team, KIND, {"simulation": str(simulation.pk)})
        simulation.save(update_fields=["job"])
        audit.note(
            team,
            actor,
            "simulation.asked",
            str(draft),
            simulation=str(simulation.pk),
            sessions=len(sessions),
            versions=[str(version) for version in versions],
        )
    return simulation


def small_first(sessions: Sequence[Session]) -> Iterator[Session]:
    """Yield a few small sessions, then the others in their order."""
    small = sorted(sessions, key=lambda session: session.block_count)[:SMALL_FIRST]
    yield from small
    yield from (session for session in sessions if session not in small)


def cancel(simulation: Simulation) -> bool:
    """Cancel a running simulation; its results so far are kept. Returns False if it had ended."""
    return simulation.job is not None and jobs.cancel(simulation.job)


def simulation_job(running: Running) -> JobOutcome:
    """Run the `simulation` job: payload {simulation}.

    One session is in memory at a time, and its results are written at once. A new attempt continues
    where the last one stopped. The job ends as partial if a session is gone or cannot be simulated.
    """
    rows = Simulation.objects.for_team(running.team).select_related("draft", "active")
    simulation = rows.filter(pk=running.payload["simulation"]).first()
    if simulation is None:
        raise PermanentFailure(
            "The simulation no longer exists", "It was deleted.", "Nothing to do."
        )
    policies = _policies(simulation)
    done = set(simulation.results.filter(version=None).values_list("session", flat=True))
    total = len(simulation.sessions)
    for number, name in enumerate(simulation.sessions):
        running.progress(number, total, "sessions")
        session = Session.objects.for_team(running.team).filter(pk=name).first()
        if session is not None and session.pk not in done:
            made = list(_results(running, simulation, session, policies, (number, total)))
            _write(session, made)
    running.progress(total, total, "sessions")
    bad = simulation.results.exclude(problem="").values("session")
    good = simulation.results.filter(version=None).exclude(session__in=bad).count()
    result = {"simulation": str(simulation.pk), "sessions": total, "problems": total - good}
    return JobOutcome(result, partial=good < total)


def _policies(simulation: Simulation) -> dict[int, Policy]:
    """The policies to simulate, by primary key of their version."""
    found = {}
    for version in simulation.versions.select_related("policy").order_by("pk"):
        try:
            found[version.pk] = from_dict(version.document)
        except InvalidPolicy as error:
            raise PermanentFailure(
                f"{version} cannot run in this release",
                f"Its document is not valid here: {error}.",
                "Save it as a new version and simulate that.",
            ) from None
    return found


def _write(session: Session, results: Sequence[SimulationResult]) -> None:
    with transaction.atomic():
        rows = Session.objects.select_for_update(of=("self",))
        locked = rows.filter(pk=session.pk).first()
        if locked is None:  # erased meanwhile
            return
        if locked.erasing is not None or locked.content_erased is not None:  # meanwhile
            for result in results:
                result.worst = []
        SimulationResult.objects.bulk_create(results, ignore_conflicts=True)


def _results(
    running: Running,
    simulation: Simulation,
    session: Session,
    policies: Mapping[int, Policy],
    place: tuple[int, int],
) -> Iterator[SimulationResult]:
    """Results of one session: its recorded baseline, and each version."""
    state = _state(session)
    known = _known(session, state, policies)
    recording: Recording | None = None
    for version in (None, *policies):
        made = SimulationResult(
            simulation=simulation, session=session, version_id=version, state=state
        )
        if (before := known.get(version)) is not None:
            made.figures, made.worst = before.figures, before.worst
            yield made
            continue
        running.progress(*place, "sessions")
        try:
            recording = recording or recording_of(session)
            if version is None:
                made.figures = recorded_figures(recording)
            else:
                simulated = figures_of(recording, policies[version])
                made.figures, made.worst = simulated.figures, simulated.worst
        except (Error, jobs.Lost):
            raise
        except (MissingBlob, DamagedBlob):
            made.problem = "Some of its stored content is missing or damaged."
        except Exception as error:
            # One broken session must not end a simulation of 500. The message may quote content, so
            # store only the class.
            log.error("session %s could not be simulated", session.pk, exc_info=True)
            made.problem = f"It could not be simulated ({type(error).__name__})."
        yield made


def _state(session: Session) -> str:
    head = Run.objects.filter(session=session, origin=Run.Origin.RECORDED).values_list("head")
    return state_of(session, head[0][0] if head else 0)


def _known(
    session: Session, state: str, versions: Iterable[int]
) -> dict[int | None, SimulationResult]:
    """Results of earlier simulations of the same records, by version."""
    found = SimulationResult.objects.filter(session=session, state=state, problem="")
    wanted = set(versions)
    return {
        result.version_id: result
        for result in found.order_by("pk")
        if result.version_id is None or result.version_id in wanted
    }
