"""Tend: background work for a live session after each append."""

from __future__ import annotations

from django.db import transaction

from compaction.proposals.plan import Wish
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import PermanentFailure, Running
from sessions.actions.live import artefacts
from sessions.actions.live.advance import Facts, advance_to
from sessions.actions.live.folds import Fold, serving, with_fold
from sessions.actions.memory import gathering, shares
from sessions.actions.record import assess
from sessions.actions.record.measure import measure
from sessions.models import Job, Run, Session

ROUNDS = 5
"""Maximum rounds of artefacts per step: each may cause a strategy to request another."""

PASSES = 50
"""Passes after which a job hands over to another one, so that none runs forever."""

Handled = tuple[Facts, bool, list[str]]
"""Extent of the records, whether they are measured, and missing artefacts."""


def ask(session: Session) -> Job:
    """Queue a tend job for a session."""
    return jobs.ask_for(session, "tend")


def tend(running: Running) -> None:
    """Run the `tend` job: payload {session}. Ends itself and leaves no row on success."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    for number in range(PASSES):
        running.progress(number, None, "pass")
        # Before summarizing, because the board is background for the summarizer.
        gathering.gather(session)
        handled = _tend(running, session)
        measure(session)
        gathering.gather(session)
        shares.share_due(session)
        if _ended(running, session, handled, last=number == PASSES - 1):
            break
    if assess.is_due(session, newest=True):
        assess.ask(session)


def _ended(running: Running, session: Session, handled: Handled, *, last: bool) -> bool:
    """End the job if nothing is newer than what it handled; on its last pass queue another."""
    with transaction.atomic():
        Session.objects.select_for_update().get(pk=session.pk)
        done = _handled(session) == handled
        if not (done or last):
            return False
        jobs.remove(running.job.id, running.token)
        if not done:
            ask(session)
        return True


def _handled(session: Session) -> Handled:
    """What a job must have handled before it may end."""
    row = Session.objects.values_list("measured", flat=True).get(pk=session.pk)
    run = Run.objects.filter(session=session, origin=Run.Origin.MANAGED).only("fold").first()
    return Facts.of(session), row, run.fold.get("wanted", []) if run else []


def _tend(running: Running, session: Session) -> Handled:
    """Advance, make missing artefacts, and advance again; return what was handled."""
    session.refresh_from_db()
    facts = Facts.of(session)
    run = serving(session)
    if run is None:
        return facts, True, []
    target = facts.steps + (0 if _awaits_results(session, facts.steps + 1) else 1)
    wanted: list[Wish] = []

    def work(fold: Fold) -> None:
        # A request may have advanced further: make its artefacts for that step.
        advance_to(fold, session, facts, max(target, fold.state.step))
        wanted[:] = fold.state.wanted

    for number in range(ROUNDS):
        with_fold(session, run, work)
        for wish in wanted:
            running.progress(number, None, "artefact")
            artefacts.make(session, wish)
        if not wanted:
            break
    run.refresh_from_db(fields=["fold"])
    return facts, True, run.fold.get("wanted", [])


def _awaits_results(session: Session, born: int) -> bool:
    """Whether tool calls of the newest response have no result yet."""
    recorded = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    newest = session.blocks.filter(born=born, type="tool_use")
    uses = set(newest.exclude(entries__run__in=recorded).values_list("tool_call", flat=True))
    if not uses:
        return False
    answers = session.blocks.filter(type="tool_result", tool_call__in=uses)
    return bool(uses - set(answers.values_list("tool_call", flat=True)))
