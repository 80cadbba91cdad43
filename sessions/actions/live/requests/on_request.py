"""Revisions on request: a compaction, queued by the API and performed by a job, and undo."""

from __future__ import annotations

from django.db import transaction

from compaction.context.edits import CannotCompact, CannotUndo
from compaction.fold.fold import end_of
from compaction.fold.on_request import compact_now, undo
from compaction.proposals.plan import Span
from sessions.actions.accounts import audit
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.live import artefacts, tend
from sessions.actions.live.advance import advance_to, store
from sessions.actions.live.arrivals import Facts
from sessions.actions.live.folds import Fold, serving, with_fold
from sessions.actions.masking.incoming import incoming
from sessions.models import Blob, Job, Revision, Session
from sessions.models.record.blobs import keep
from sessions.models.record.values import contents

__all__ = ["CannotCompact", "CannotUndo", "compact", "request_compaction", "undo_revision"]

ROUNDS = 5
"""Maximum summaries per request: meanwhile the policy may stub what was summarized."""


def request_compaction(
    session: Session,
    instructions: str = "",
    *,
    done: bool = False,
    actor: audit.Actor = audit.POLICY,
) -> Job:
    """Queue a compaction of the managed context; `done` if its task is done.

    The audit log has those that a person asks for; agents ask often. Raises CannotCompact without
    a policy.
    """
    if session.policy_version_id is None:
        raise CannotCompact(
            "The session has no policy, so there is no managed context to "
            "compact. Select a policy first."
        )
    sha = ""
    with transaction.atomic():
        if instructions:
            if masks := incoming(session.team_id):
                instructions = masks.now.value(instructions)
            # Store the instructions as a blob, because a job's payload contains only ids.
            blob = Blob.of(session.team_id, instructions.encode("utf-8", "surrogatepass"))
            keep(blob.team_id, [blob])
            sha = blob.sha
        payload = {"session": str(session.pk), "instructions": sha, "done": done}
        key = f"compact:{session.pk}:{sha[:16]}{':done' if done else ''}"
        job = enqueue(session.team, "compact", payload, key)
        if actor.user is not None:
            audit.note(session.team, actor, "compaction.asked", session.external_id, done=done)
    return job


def compact(running: Running) -> JobOutcome:
    """Run the `compact` job: payload {session, instructions: sha of a blob or "", done}."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    sha = running.payload["instructions"]
    given = contents(session, [sha])[sha].decode("utf-8", "surrogatepass") if sha else ""
    try:
        if running.job.result is None:  # else made by an attempt that died after it
            _compact(running, session, given, running.payload.get("done", False))
    except CannotCompact as refused:
        raise PermanentFailure(
            "Nothing was compacted", str(refused), "Try again when the context has grown."
        ) from None
    tend.ask(session)
    return JobOutcome(running.job.result or {})


def _compact(running: Running, session: Session, instructions: str, done: bool) -> None:
    until: int | None = None
    for number in range(ROUNDS):
        made = _try(running, session, instructions, until, done)
        if made is None:
            return
        running.progress(number, None, "summary")
        artefacts.make(session, made)
        until = end_of(made)
    raise CannotCompact("The context changed faster than it could be summarized. Try again.")


def _try(
    running: Running, session: Session, instructions: str, until: int | None, done: bool
) -> Span | None:
    """Store the revision; or the span that still needs a summary."""
    run = serving(session)
    if run is None:
        raise CannotCompact(
            "The session has no policy, so there is no managed context to "
            "compact. Select a policy first."
        )
    session.refresh_from_db()
    facts = Facts.of(session)

    def work(fold: Fold) -> Span | None:
        advance_to(fold, session, facts, facts.steps)
        fold.stopwatch.begin()
        made = compact_now(fold.state, instructions, until, done=done)
        if made is not None:
            fold.stopwatch.note(made)
            with transaction.atomic():
                store(fold, session, [made])
                running.keep({"session": str(session.pk), "revision": made.number})
            return None
        (wish,) = fold.state.wanted
        assert isinstance(wish, Span)
        # This job makes it; nothing else should wait for it.
        fold.state.wanted = []
        return wish

    return with_fold(session, run, work)


def undo_revision(session: Session, number: int, actor: audit.Actor = audit.COMMAND) -> Revision:
    """Restore what revision `number` of the managed run replaced. Raises CannotUndo."""
    run = serving(session)
    if run is None:
        raise CannotUndo("The session has no policy, so it has no managed revision to undo.")

    def work(fold: Fold) -> int:
        made = undo(fold.state, number)
        with transaction.atomic():
            store(fold, session, [made])
            audit.note(session.team, actor, "revision.undone", session.external_id, number=number)
        return made.number

    made = with_fold(session, run, work)
    tend.ask(session)
    return Revision.objects.get(run=run, number=made)
