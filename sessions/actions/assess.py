"""Assess: what is worked out of a session once some of it is over, for dashboards and reviews."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from compaction.facts import ledger
from sessions.actions import fact_ledgers, gathering, guardrails, jobs, reviews
from sessions.actions.asking import ask_for
from sessions.actions.assessments import ENGINE, assessment_due, keep_assessment
from sessions.actions.attempts import Refused, Running
from sessions.actions.measure import is_outdated, measure
from sessions.actions.measured import ENGINE as MEASURES
from sessions.models import FactLedger, Job, Run, Session, Team
from sessions.models.blobs import DamagedBlob
from sessions.models.sessions import SOURCE_LIVE, SessionQuerySet
from sessions.models.values import MissingBlob

log = logging.getLogger(__name__)

PASSES = 5
"""Times that a job looks again before it leaves what is new to the next that asks."""

AT_ONCE = 200
"""Sessions that one job walks through; the rest are another's, so that others get their turn."""


def ask(session: Session) -> Job:
    """Ask for a session to be assessed."""
    return ask_for(session, "assess")


def ask_all(team: Team) -> Job | None:
    """Ask for all sessions of a team that have no assessment, or an old one; None without any."""
    if not _unassessed(team).exists():
        return None
    return jobs.enqueue(team, "assess", {"all": True}, f"assess:{team.pk}")


def ask_everywhere() -> None:
    """Ask for every team: what was stored by an earlier version has no assessment."""
    for team in Team.objects.all():
        ask_all(team)


def is_due(session: Session, *, newest: bool = False) -> bool:
    """Whether something of a session is to be worked out; `newest` as for `fact_ledgers.due`."""
    if assessment_due(session):
        return True
    return next(fact_ledgers.due(session, newest=newest), None) is not None


def assess(running: Running) -> None:
    """The job kind `assess`: payload {session}, or {all, after} for a team's sessions that lack an
    assessment, by id. What ends well leaves no row."""
    if running.payload.get("all"):
        _walk(running)
        return
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise Refused("The session is gone", "It was deleted meanwhile.", "Nothing to do.")
    for number in range(PASSES):
        running.progress(number, None, "pass")
        assess_session(session)
        guardrails.check_team(running.team)
        if _ended(running, session, last=number == PASSES - 1):
            return


def assess_session(session: Session, heard: Callable[[], None] | None = None) -> None:
    """Make what is due: figures by today's rules, ledgers, which reviews draw from, and the
    assessment.

    `heard` is called between the parts. Raises MissingBlob, DamagedBlob.
    """
    session.refresh_from_db()
    if is_outdated(session):
        measure(session)
    for revision in fact_ledgers.due(session):
        ledger = fact_ledgers.keep_ledger(session, revision)
        if ledger is not None:
            reviews.sample(revision, ledger)
        if heard is not None:
            heard()
    gathering.gather(session)
    if assessment_due(session):
        keep_assessment(session)


def _ended(running: Running, session: Session, *, last: bool) -> bool:
    """End the job unless something came meanwhile: who asks for it finds this one unfinished."""
    with transaction.atomic():
        session = Session.objects.select_for_update().get(pk=session.pk)
        if not last and is_due(session, newest=True):
            return False
        jobs.remove(running.job.id, running.token)
        return True


def _walk(running: Running) -> None:
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
    """One session whose bytes are damaged must not keep the others from being assessed."""
    try:
        assess_session(session, lambda: running.progress(0, None, "sessions"))
    except (MissingBlob, DamagedBlob):
        log.warning("session %s cannot be assessed: its bytes are damaged", session.pk)


def _unassessed(team: Team) -> SessionQuerySet:
    """Sessions not measured or assessed by today's rules, and imported ones that have grown."""
    old = Q(assessment=None) | Q(assessment__engine__lt=ENGINE)
    measured = Run.objects.filter(origin=Run.Origin.RECORDED, engine__lt=MEASURES)
    old |= Q(pk__in=measured.values("session"))
    old |= Q(
        pk__in=FactLedger.objects.filter(engine__lt=ledger.ENGINE).values("revision__run__session")
    )
    grown = ~Q(source=SOURCE_LIVE) & ~Q(assessment__steps=F("step_count"))
    return Session.objects.for_team(team).filter(old | grown)
