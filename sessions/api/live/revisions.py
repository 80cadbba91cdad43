"""Revisions of a live session's policy, undo, and compaction requests."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Body, Path, Router

from compaction.context.edits import CannotCompact, CannotUndo
from sessions.access import actor_of, session_of
from sessions.actions.live.requests.on_request import request_compaction, undo_revision
from sessions.api.jobs.jobs import job_asked
from sessions.api.jobs.shapes import JobAsked
from sessions.api.live import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once, fold_ready
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import BIGGEST
from sessions.models import Revision, Run, Session

router = Router(tags=["Revisions"])


def _ms(us: int | None) -> float | None:
    return None if us is None else us / 1000


def describe_revision(revision: Revision, edits: int) -> dict[str, Any]:
    """A revision as JSON."""
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


def _managed(session: Session) -> QuerySet[Revision]:
    return Revision.objects.filter(run__session=session, run__origin=Run.Origin.MANAGED)


@router.get(
    "sessions/{path:session_id}/revisions", response=shapes.RevisionList, url_name="revisions"
)
def revisions(request: HttpRequest, session_id: str) -> HttpResponse:
    """List the revisions of the managed context, in order."""
    session = session_of(request, session_id)
    rows = _managed(session).annotate(edit_count=Count("edits")).order_by("number")
    return json_answer({"revisions": [describe_revision(row, row.edit_count) for row in rows]})


@router.post(
    "sessions/{path:session_id}/revisions/{number}/undo",
    response={201: shapes.RevisionOut},
    url_name="undo",
)
@fold_ready
@done_once
def undo(
    request: HttpRequest, session_id: str, number: int = Path(..., ge=1, le=BIGGEST)
) -> HttpResponse:
    """Undo a revision: a new revision restores what it replaced.

    409 with the reason if later edits depend on it.
    """
    session = session_of(request, session_id)
    if not _managed(session).filter(number=number).exists():
        raise Http404("no such revision")
    try:
        made = undo_revision(session, number, actor_of(request))
    except CannotUndo as error:
        raise Refusal(409, "Cannot be undone", str(error)) from None
    return json_answer(describe_revision(made, made.edits.count()), 201)


@router.post(
    "sessions/{path:session_id}/compactions",
    response={202: JobAsked},
    url_name="compactions",
)
@done_once
def compactions(
    request: HttpRequest,
    session_id: str,
    wanted: shapes.CompactionIn = Body(None),
) -> HttpResponse:
    """Queue a compaction, regardless of the policy's trigger.

    409 for a session without a policy.
    """
    session = session_of(request, session_id)
    try:
        instructions = wanted.instructions if wanted else ""
        done = bool(wanted and wanted.task_done)
        job = request_compaction(session, instructions, done=done, actor=actor_of(request))
    except CannotCompact as error:
        raise Refusal(409, "Cannot be compacted", str(error)) from None
    return job_asked(job)
