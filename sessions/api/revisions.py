"""What the policy of a live session did, taking it back, and asking for a compaction."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Body, Path, Router

from compaction.edits import CannotCompact, CannotUndo
from sessions.actions.compactions import request_compaction
from sessions.actions.undo import undo_revision
from sessions.api import incoming, shapes
from sessions.api.access import actor_of, session_of
from sessions.api.answers import done_once, fold_ready, told
from sessions.api.jobs import job_asked
from sessions.api.problems import Refusal
from sessions.models import Revision, Run, Session

router = Router(tags=["Revisions"])


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def revision_told(revision: Revision, edits: int) -> dict[str, Any]:
    """A revision as the API tells it."""
    return {
        "number": revision.number,
        "step": revision.step,
        "trigger": revision.trigger,
        "reason": revision.reason,
        "tokens_before": revision.tokens_before,
        "tokens_after": revision.tokens_after,
        "estimate_ms": _ms(revision.estimate_us),
        "shaping_ms": _ms(revision.shaping_us),
        "summary_ms": revision.summary_ms,
        "edits": edits,
    }


def _served(session: Session) -> QuerySet[Revision]:
    return Revision.objects.filter(run__session=session, run__origin=Run.Origin.SERVED)


@router.get(
    "sessions/{path:session_id}/revisions", response=shapes.RevisionList, url_name="revisions"
)
def revisions(request: HttpRequest, session_id: str) -> HttpResponse:
    """Lists what the policy did to the context that the agent gets, in order."""
    session = session_of(request, session_id)
    rows = _served(session).annotate(edit_count=Count("edits")).order_by("number")
    return told({"revisions": [revision_told(row, row.edit_count) for row in rows]})


@router.post(
    "sessions/{path:session_id}/revisions/{number}/undo",
    response={201: shapes.RevisionTold},
    url_name="undo",
)
@fold_ready
@done_once
def undo(
    request: HttpRequest, session_id: str, number: int = Path(..., ge=1, le=incoming.BIGGEST)
) -> HttpResponse:
    """Takes a revision back: what it replaced stands again, by a new revision.

    409 with the reason where later edits rest on what it made.
    """
    session = session_of(request, session_id)
    if not _served(session).filter(number=number).exists():
        raise Http404("no such revision")
    try:
        made = undo_revision(session, number, actor_of(request))
    except CannotUndo as error:
        raise Refusal(409, "Cannot be undone", str(error)) from None
    return told(revision_told(made, made.edits.count()), 201)


@router.post(
    "sessions/{path:session_id}/compactions",
    response={202: shapes.JobAsked},
    url_name="compactions",
)
@done_once
def compactions(
    request: HttpRequest,
    session_id: str,
    wanted: incoming.CompactionWanted = Body(None),
) -> HttpResponse:
    """Asks for a compaction now, whatever the policy's threshold; a job does it.

    409 for a session without a policy.
    """
    session = session_of(request, session_id)
    try:
        instructions = wanted.instructions if wanted else ""
        job = request_compaction(session, instructions, done=bool(wanted and wanted.task_done))
    except CannotCompact as error:
        raise Refusal(409, "Cannot be compacted", str(error)) from None
    return job_asked(job)
