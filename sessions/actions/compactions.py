"""Compaction by request: asked for through the API, done by a job."""

from __future__ import annotations

from django.db import transaction

from compaction.edits import CannotCompact, Revision
from compaction.fold import end_of
from compaction.on_request import compact_now
from compaction.plan import Span
from sessions.actions import artefacts, tend
from sessions.actions.advance import Facts, advance_to, serving
from sessions.actions.attempts import Outcome, Refused, Running
from sessions.actions.folds import Fold, with_fold
from sessions.actions.jobs import enqueue
from sessions.models import Blob, Job, Session
from sessions.models.values import contents

__all__ = ["CannotCompact", "compact", "request_compaction"]

ROUNDS = 5
"""Summaries made before a request gives up: a policy may go on stubbing what is summarised."""


def request_compaction(session: Session, instructions: str = "", *, done: bool = False) -> Job:
    """Ask for a compaction of the served context now; `done`: as its task is.

    Raises CannotCompact without a policy.
    """
    if session.policy_version_id is None:
        raise CannotCompact("The session has no policy: its context is what its agent sends.")
    sha = ""
    with transaction.atomic():
        if instructions:
            # Content, and so in the store: a job's payload holds ids only.
            blob = Blob.of(session.team_id, instructions.encode("utf-8", "surrogatepass"))
            Blob.objects.bulk_create([blob], ignore_conflicts=True)
            sha = blob.sha
        payload = {"session": str(session.pk), "instructions": sha, "done": done}
        key = f"compact:{session.pk}:{sha[:16]}{':done' if done else ''}"
        return enqueue(session.team, "compact", payload, key)


def compact(running: Running) -> Outcome:
    """The job kind `compact`: payload {session, instructions: sha of a blob or "", done}."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise Refused("The session is gone", "It was deleted meanwhile.", "Nothing to do.")
    sha = running.payload["instructions"]
    given = contents(session, [sha])[sha].decode("utf-8", "surrogatepass") if sha else ""
    try:
        revision = _compact(running, session, given, running.payload.get("done", False))
    except CannotCompact as refused:
        raise Refused(
            "Nothing was compacted", str(refused), "Ask again when the context has grown."
        ) from None
    tend.ask(session)
    return Outcome({"session": str(session.pk), "revision": revision.number})


def _compact(running: Running, session: Session, instructions: str, done: bool) -> Revision:
    until: int | None = None
    for number in range(ROUNDS):
        made = _try(session, instructions, until, done)
        if not isinstance(made, Span):
            return made
        running.progress(number, None, "summary")
        artefacts.make(session, made)
        until = end_of(made)
    raise CannotCompact("The context changed faster than it could be summarised.")


def _try(session: Session, instructions: str, until: int | None, done: bool) -> Revision | Span:
    """The revision, or the span of which there is no summary yet."""
    run = serving(session)
    if run is None:
        raise CannotCompact("The session has no policy: its context is what its agent sends.")
    session.refresh_from_db()
    facts = Facts.of(session)

    def work(fold: Fold) -> Revision | Span:
        advance_to(fold, session, facts, facts.steps)
        fold.stopwatch.begin()
        made = compact_now(fold.state, instructions, until, done=done)
        if made is not None:
            fold.stopwatch.note(made)
            fold.store(session, [made])
            return made
        (wish,) = fold.state.wanted
        assert isinstance(wish, Span)
        # It is this job that makes it: nobody who waits for the policy waits for that.
        fold.state.wanted = []
        return wish

    return with_fold(session, run, work)
