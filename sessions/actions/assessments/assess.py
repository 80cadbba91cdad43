"""Assess: compute figures of finished sessions and compactions, for dashboards and reviews."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from compaction.losses import ledger
from sessions.actions.assessments.assessments import ENGINE, REST, assessment_due, keep_assessment
from sessions.actions.assessments.lost_facts import keep_lost
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import PermanentFailure, Running
from sessions.actions.jobs.jobs import ask_for
from sessions.actions.memory import gathering
from sessions.actions.policies import guardrails
from sessions.actions.record.measure import is_outdated, measure, measure_imported
from sessions.actions.record.measured import ENGINE as MEASURES
from sessions.actions.reviews import fact_ledgers, ranks, reviews
from sessions.models import FactLedger, Job, Run, Session, Team
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.sessions import SOURCE_LIVE, SessionQuerySet
from sessions.models.record.values import MissingBlob

log = logging.getLogger(__name__)

PASSES = 5
"""Passes after which a job leaves new data to the next one."""

AT_ONCE = 200
"""Sessions per job; another job continues, so that others get their turn."""


LONG, STEPS_PER_SECOND, LONGEST_PAUSE = 1000, 500, 300
"""Steps above which figures of a session whose spans keep coming wait, and how long: a second per
so many steps, up to so many seconds. Measuring takes under a tenth of that (our choice), however
many requests bring the spans."""


def ask(session: Session) -> Job:
    """Queue the assessment of a session; a little later, so that the process which asks can do
    it."""
    return ask_for(session, "assess", after=settings.TEND_SECONDS)


def measure_soon(session: Session) -> None:
    """Measure a session whose spans keep coming: a long one a little later, in a job."""
    if session.step_count > LONG:
        _ask_later(session)
    else:
        measure_now(session)


def measure_now(session: Session) -> None:
    """Measure an imported session; one that is written all the time again in a job."""
    if not measure_imported(session):
        _ask_later(session)


def _ask_later(session: Session, *, locked: bool = False) -> None:
    pause = min(session.step_count / STEPS_PER_SECOND, LONGEST_PAUSE)
    ask_for(session, "assess", locked=locked, after=pause)


def ask_all(team: Team) -> Job | None:
    """Queue the assessment of all sessions of a team whose assessment is missing or outdated, and
    the ranking of review items; None if there are none."""
    if not (ranks.unranked(team) or _unassessed(team).exists()):
        return None
    return jobs.enqueue(team, "assess", {"all": True}, f"assess:{team.pk}")


def ask_everywhere() -> None:
    """Queue assessments for every team, for sessions stored by an earlier release."""
    for team in Team.objects.all():
        ask_all(team)


def ask_resting(now: datetime, within: timedelta) -> None:
    """Queue the assessment of live sessions that came to rest during the last `within`: nothing
    else asks for it until they go on."""
    for team in Team.objects.all():
        kept = Session.objects.for_team(team).filter(erasing=None, content_erased=None)
        kept = kept.filter(archived=None)
        rows = kept.filter(source=SOURCE_LIVE, outcome="").defer("sparkline")
        rested = rows.filter(changed__lt=now - REST, changed__gte=now - REST - within)
        for session in rested.exclude(assessment__steps__gte=F("step_count")):
            ask(session)


def is_due(session: Session, *, newest: bool = False) -> bool:
    """Whether a session needs assessment; `newest` as in `fact_ledgers.due`."""
    if assessment_due(session):
        return True
    return next(fact_ledgers.due(session, newest=newest), None) is not None


def assess(running: Running) -> None:
    """Run the `assess` job: payload {session}, or {all, after} for all of a team's sessions without
    an assessment, by id. Leaves no row on success."""
    if running.payload.get("all"):
        _walk(running)
        return
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    for number in range(PASSES):
        running.progress(number, None, "pass")
        assess_session(session)
        guardrails.check_team(running.team)
        if _ended(running, session, last=number == PASSES - 1):
            return


def assess_session(session: Session, heard: Callable[[], None] | None = None) -> None:
    """Update everything that is due: figures, ledgers, review items, and the assessment.

    `heard` is called between the parts. Raises MissingBlob, DamagedBlob.
    """
    session.refresh_from_db()
    if is_outdated(session) or _waits(session):
        measure(session)
    looked = False
    for revision in fact_ledgers.due(session):
        ledger = fact_ledgers.keep_ledger(session, revision)
        if ledger is not None:
            looked = True
            reviews.sample(revision, ledger)
        if heard is not None:
            heard()
    gathering.gather(session)
    if assessment_due(session):
        keep_assessment(session)
    elif looked:
        keep_lost(session)


def _ended(running: Running, session: Session, *, last: bool) -> bool:
    """End the job unless there is new data; requests meanwhile find it unfinished."""
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=session.pk)
        if not last and is_due(session, newest=True):
            return False
        jobs.remove(running.job.id, running.token)
        if _waits(session):
            _ask_later(session, locked=True)
        return True


def _waits(session: Session) -> bool:
    """Whether figures of an imported session are due; those of live ones are in `tend`."""
    return not session.measured and session.source != SOURCE_LIVE


def _walk(running: Running) -> None:
    while ranks.rank_some(running.team):
        running.progress(0, None, "review items")
    rows = _unassessed(running.team)
    if (after := running.payload.get("after")) is not None:
        rows = rows.filter(pk__gt=UUID(after))
    found = list(rows.order_by("pk").values_list("pk", flat=True)[: AT_ONCE + 1])
    for done, pk in enumerate(found[:AT_ONCE]):
        running.progress(done, len(found[:AT_ONCE]), "sessions")
        session = Session.objects.filter(pk=pk).first()
        if session is not None:
            _try(running, session)
    guardrails.check_team(running.team)
    with transaction.atomic():
        jobs.remove(running.job.id, running.token)
        if len(found) > AT_ONCE:
            payload = {"all": True, "after": str(found[AT_ONCE - 1])}
            jobs.enqueue(running.team, "assess", payload, f"assess:{running.team.pk}")


def _try(running: Running, session: Session) -> None:
    """Assess one session; damaged content must not stop the others."""
    try:
        assess_session(session, lambda: running.progress(0, None, "sessions"))
    except SessionErased:
        pass
    except (MissingBlob, DamagedBlob):
        log.warning("session %s cannot be assessed: its content is damaged", session.pk)


def _unassessed(team: Team) -> SessionQuerySet:
    """Sessions measured or assessed by older rules, and imported ones that have grown, as far as
    their content is there."""
    old = Q(assessment=None) | Q(assessment__engine__lt=ENGINE)
    measured = Run.objects.filter(origin=Run.Origin.RECORDED, engine__lt=MEASURES)
    old |= Q(pk__in=measured.values("session"))
    old |= Q(
        pk__in=FactLedger.objects.filter(engine__lt=ledger.ENGINE).values("revision__run__session")
    )
    grown = ~Q(source=SOURCE_LIVE) & ~Q(assessment__steps=F("step_count"))
    kept = Session.objects.for_team(team).filter(erasing=None, content_erased=None, archived=None)
    own_job = Q(measured=False, step_count__gt=LONG) & ~Q(source=SOURCE_LIVE)
    return kept.filter(old | grown).exclude(own_job)
