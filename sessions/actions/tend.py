"""Tend: what a worker does for a live session after each append."""

from __future__ import annotations

from django.db import transaction

from compaction.plan import Wish
from sessions.actions import artefacts, assess, gathering, jobs, shares
from sessions.actions.advance import Facts, advance_to, serving
from sessions.actions.asking import ask_for
from sessions.actions.attempts import Refused, Running
from sessions.actions.folds import Fold, with_fold
from sessions.actions.measure import measure
from sessions.models import Job, Run, Session

ROUNDS = 5
"""Artefacts made in a row for one step: each may let a strategy want another."""

PASSES = 50
"""Times that a job looks again before it lets another go on: none may run for ever."""

Handled = tuple[Facts, bool, list[str]]
"""Records, whether they are measured, and artefacts that a policy waits for."""


def ask(session: Session) -> Job:
    """Ask for a session to be tended."""
    return ask_for(session, "tend")


def tend(running: Running) -> None:
    """The job kind `tend`: payload {session}. It ends itself: what ends well leaves no row."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise Refused("The session is gone", "It was deleted meanwhile.", "Nothing to do.")
    for number in range(PASSES):
        running.progress(number, None, "pass")
        # Before a summary is written: its board helps whoever writes it.
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
    """End the job if nothing is newer than what it handled; at its last pass another takes over."""
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
    """What a job has to have handled before it may end: nothing may be newer than this."""
    row = Session.objects.values_list("measured", flat=True).get(pk=session.pk)
    run = Run.objects.filter(session=session, origin=Run.Origin.SERVED).only("fold").first()
    return Facts.of(session), row, run.fold.get("wanted", []) if run else []


def _tend(running: Running, session: Session) -> Handled:
    """Advance, make what is wanted, advance again; what is handled by that."""
    session.refresh_from_db()
    facts = Facts.of(session)
    run = serving(session)
    if run is None:
        return facts, True, []
    target = facts.steps + (0 if _awaits_results(session, facts.steps + 1) else 1)
    wanted: list[Wish] = []

    def work(fold: Fold) -> None:
        # A request may have come further: what it waits for is made for that step.
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
    """Whether tool calls of the newest response have no result yet: the agent is not done."""
    recorded = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    newest = session.blocks.filter(born=born, type="tool_use")
    uses = set(newest.exclude(entries__run__in=recorded).values_list("tool_call", flat=True))
    if not uses:
        return False
    answers = session.blocks.filter(type="tool_result", tool_call__in=uses)
    return bool(uses - set(answers.values_list("tool_call", flat=True)))
