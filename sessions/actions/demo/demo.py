"""Demo sessions: load, simulate, remove."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from django.db import transaction

from compaction.tokens import counted
from sessions import demo
from sessions.actions.accounts import audit
from sessions.actions.assessments.assess import assess_session
from sessions.actions.demo.demo_live import begin_live, end_live
from sessions.actions.demo.demo_tuning import tune_demo, untune_demo
from sessions.actions.jobs.attempts import JobOutcome, Running
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.record.append import append_all, link_parents
from sessions.actions.record.erased import erase, erase_unused
from sessions.actions.record.measure import measure
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.models import Session, Team

SOURCE = KIND = "demo"
REMOVAL = "demo-removal"
"""Kind of the job that removes the demo."""

SIMULATED = ("balanced", "balanced-lean", "offload-first", "sliding-window")
"""Presets to simulate over the demo; pages simulate others when they are chosen."""

CHUNK = 400
"""Values per query: below SQLite's limit on variables."""

Progress = Callable[[int, int], None]
"""Called with the number of sessions done and the total."""


def load_demo(
    team: Team, count: Count, now_ms: int, progress: Progress | None = None
) -> list[Session]:
    """Store the demo sessions as if they had happened in the days before `now_ms`.

    Returns the sessions added. Existing ones are left unchanged, so loading again after an
    interruption adds only what is missing.
    """
    wanted = demo.EXTERNAL_IDS
    known = set(
        Session.objects.for_team(team)
        .filter(external_id__in=wanted, measured=True)
        .values_list("external_id", flat=True)
    )
    # Playing a session counts texts that storing it counts again.
    remembering = lru_cache(maxsize=None)(count)
    added: list[Session] = []
    for done, group in enumerate(demo.play(now_ms, remembering, without=known)):
        added += _store(team, group, remembering)
        if progress:
            progress(len(known) + done + 1, len(wanted))
    return added


def _store(team: Team, group: Sequence[records.Session], count: Count) -> list[Session]:
    """Store a session and its sub-agents, all or none."""
    made = append_all(team, group, count, source=SOURCE, demo=True)
    link_parents(team)
    stored = [one.session for one in made]
    for session in stored:
        session.outcome = demo.OUTCOMES.get(session.external_id, "")
        session.save(update_fields=["outcome"])
    # Measure the session itself last: once it is measured, nothing is missing.
    for session in reversed(stored):
        measure(session)
    for session in stored:
        assess_session(session)
    return stored


def simulate_demo(
    sessions: Sequence[Session],
    progress: Progress | None = None,
    presets: Sequence[str] = SIMULATED,
) -> int:
    """Simulate the presets over demo sessions; return the number of runs."""
    pairs = [(session, preset) for session in sessions for preset in presets]
    for done, (session, preset) in enumerate(pairs, 1):
        simulate_session(session, preset)
        if progress:
            progress(done, len(pairs))
    return len(pairs)


@transaction.atomic
def remove_demo(team: Team) -> int:
    """Delete the demo: sessions, runs, blobs only they use, its policy, budgets, and knowledge
    learned from it. Returns the number of sessions."""
    untune_demo(team)
    end_live(team)
    sessions = Session.objects.for_team(team).filter(demo=True)
    many = sessions.count()
    erase_unused(team, erase(team, sessions))
    if many:
        audit.note(team, audit.COMMAND, "demo.removed", sessions=many)
    return many


def demo_job(running: Running) -> JobOutcome:
    """Run the `demo` job: no payload; the result names the sessions added."""
    now_ms = int(time.time() * 1000)
    added = load_demo(running.team, counted, now_ms, _reporting(running, "sessions"))
    runs = simulate_demo(added, _reporting(running, "simulations"))
    tune_demo(running.team, added)
    live = begin_live(running.team, now_ms, counted)
    return JobOutcome({"sessions": [str(session.pk) for session in [*added, *live]], "runs": runs})


def _reporting(running: Running, unit: str) -> Progress:
    def report(done: int, total: int) -> None:
        running.progress(done, total, unit)

    return report


def removal_job(running: Running) -> JobOutcome:
    """Run the `demo-removal` job: no payload; the result has the number of sessions removed."""
    return JobOutcome({"removed": remove_demo(running.team)})
