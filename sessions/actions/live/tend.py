"""Tend: background work for a live session after each append."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from compaction.proposals.plan import Wish
from sessions import live
from sessions.actions.assessments import assess
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import PermanentFailure, Running
from sessions.actions.live import artefacts
from sessions.actions.live.advance import advance_to
from sessions.actions.live.arrivals import Facts
from sessions.actions.live.folds import Fold, with_fold
from sessions.actions.memory import gathering, shares
from sessions.actions.record.measure import measure
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.actions.search import indexing
from sessions.models import Block, Job, Run, Session
from sessions.models.web.statements import Statement, given_int, given_uuid

ROUNDS = 5
"""Maximum rounds of artefacts per step: each may cause a strategy to request another."""

BEHIND = 50
"""Blocks that a managed run may lag behind before it is advanced without a request."""

FIRST_STEPS, PAUSES, UNSEEN_PAUSES = 20, 3, 5
"""Steps of a session that are measured soon. Later on a job waits that many times as long, and
longer while no page shows the session, so that it does the work of several steps at once: most of
its cost is not in what is new."""

Handled = tuple[Facts, bool, list[str]]
"""Extent of the records, whether they are measured, and missing artefacts."""


def ask(session: Session, *, locked: bool = False, after: float = 0) -> Job:
    """Queue a tend job for a session, to begin `after` seconds from now."""
    return jobs.ask_for(session, "tend", locked=locked, after=after)


def ask_later(session: Session) -> Job:
    """Queue a tend job for what was just stored, with the session's row locked."""
    pauses = 1
    if session.step_count > FIRST_STEPS:
        pages = f"session:{session.pk}", f"sessions:{session.team_id}"
        pauses = PAUSES if live.may_be_shown(*pages) else UNSEEN_PAUSES
    return ask(session, locked=True, after=pauses * settings.TEND_SECONDS)


def tend(running: Running) -> None:
    """Run the `tend` job: payload {session}. Ends itself and leaves no row on success; what was
    stored meanwhile is left to another job, after a pause."""
    session = _SESSION.first(team=running.team.pk, session=UUID(running.payload["session"]))
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    handled = _tend(running, session)
    measure(session)
    if gathering.is_due(session):
        gathering.gather(session)
    shares.share_due(session)
    _end(running, session, handled)
    if assess.is_due(session, newest=True):
        assess.ask(session)
    indexing.ask(running.team, after=indexing.PAUSE)


_SESSION = Statement(
    lambda: (
        Session.objects.select_related("policy_version__policy")
        .defer("sparkline")
        .filter(team_id=given_uuid("team"), pk=given_uuid("session"))
    )
)


def _end(running: Running, session: Session, handled: Handled) -> None:
    """End the job; if something is newer than what it handled, queue another."""
    with transaction.atomic():
        done = _handled(session) == handled
        jobs.remove(running.job.id, running.token)
        if not done:
            ask_later(session)


_LOCK = Statement(
    lambda: (
        Session.objects.select_for_update()
        .filter(pk=given_uuid("session"))
        .values_list("pk", "measured")
    )
)


def _handled(session: Session) -> Handled:
    """What a job must have handled before it may end."""
    _, measured = _LOCK.first(session=session.pk)
    run = Run.of(session, Run.Origin.MANAGED)
    return Facts.of(session), measured, run.fold.get("wanted", []) if run else []


def _tend(running: Running, session: Session) -> Handled:
    """Advance, make missing artefacts, and advance again; return what was handled."""
    facts = Facts.of(session)
    run = Run.of(session, Run.Origin.MANAGED)
    if run is None:
        return facts, True, []  # its agent never asked for a context
    if not run.fold.get("wanted") and not _lags(session, run, facts):
        return facts, True, []  # a request has advanced it, or none asks for it
    target = facts.steps + (0 if _awaits_results(session, facts.steps + 1) else 1)
    wanted: list[Wish] = []

    def work(fold: Fold) -> None:
        # A request may have advanced further: make its artefacts for that step.
        advance_to(fold, session, facts, max(target, fold.state.step))
        wanted[:] = fold.state.wanted

    for number in range(ROUNDS):
        with_fold(session, run, work)
        if wanted and not number:
            gathering.gather(session)  # the board is background for the summarizer
        for wish in wanted:
            running.progress(number, None, "artefact")
            artefacts.make(session, wish)
        if not wanted:
            break
    run.refresh_from_db(fields=["fold"])
    return facts, True, run.fold.get("wanted", [])


def _lags(session: Session, run: Run, facts: Facts) -> bool:
    """Whether a managed run is so far behind that the next request would have to wait for it.

    Requests advance it themselves. Where none comes, each rebuilds what it has read: so it must
    have grown by a share.
    """
    behind = facts.blocks - run.taken
    return behind >= (1 if is_over(session) else max(BEHIND, run.taken // 4))


def _awaits_results(session: Session, born: int) -> bool:
    """Whether tool calls of the newest response have no result yet."""
    uses = set(_OPEN.column(session=session.pk, born=born))
    if not uses:
        return False
    return bool(uses - set(_ANSWERED.column(session=session.pk, born=born)))


_OPEN = Statement(
    lambda: (
        Block.objects.filter(
            session_id=given_uuid("session"), born=given_int("born"), type="tool_use"
        )
        .exclude(
            entries__run__in=Run.objects.filter(
                session_id=given_uuid("session"), origin=Run.Origin.RECORDED
            )
        )
        .values_list("tool_call")
    )
)
_ANSWERED = Statement(
    lambda: Block.objects.filter(
        session_id=given_uuid("session"), born__gte=given_int("born"), type="tool_result"
    ).values_list("tool_call")
)
