"""Erasures: erase sessions, tasks, subjects, members and teams for good, with receipts."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Query, Router

from sessions.access import actor_of, find_session, require, team_to, teams_of
from sessions.actions.accounts.members import LastOwner
from sessions.actions.erasure import receipts
from sessions.actions.erasure.holds import Held
from sessions.actions.erasure.requests import ErasureRule, NothingToErase, Scope, begin, scope_of
from sessions.actions.erasure.rules import sessions_of
from sessions.api.erasure import shapes
from sessions.api.record.sessions import last
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import Problem, StorableText
from sessions.models import Erasure, Job, Team

ROWS_AT_ONCE = 200

router = Router(tags=["Erasures"])


def state_of(erasure: Erasure) -> str:
    """Whether an erasure is done, running, or has failed."""
    if erasure.finished is not None:
        return "done"
    job = erasure.job
    failed = job is None or job.state in (Job.State.FAILED, Job.State.CANCELLED)
    return "failed" if failed else "running"


def describe_erasure(erasure: Erasure) -> dict[str, Any]:
    """An erasure as JSON."""
    return {
        "id": str(erasure.pk),
        "kind": erasure.kind,
        "content_only": erasure.content_only,
        "state": state_of(erasure),
        "by": erasure.by,
        "reason": erasure.reason,
        "sessions": erasure.sessions.count(),
        "rows": erasure.counts,
        "created": erasure.created.isoformat(),
        "finished": erasure.finished.isoformat() if erasure.finished else None,
        "job": str(erasure.job_id) if erasure.job_id else None,
        "receipt": json.loads(erasure.receipt) if erasure.receipt else None,
    }


def describe_scope(scope: Scope) -> dict[str, Any]:
    """The result of a dry run as JSON."""
    return {
        "kind": scope.rule.kind,
        "sessions": len(scope.sessions),
        "rows": scope.rows,
        "bytes": scope.bytes,
        "delivered": scope.shared,
        "first": list(scope.first.values()),
        "held": scope.held or None,
    }


def erasure_of(request: HttpRequest, erasure_id: UUID) -> Erasure:
    """An erasure of the requester's teams, for one who may erase. Raises Http404."""
    rows = Erasure.objects.filter(team__in=teams_of(request), pk=erasure_id)
    found = rows.select_related("team", "job").first()
    if found is None:
        raise Http404("no such erasure")
    require(request, found.team, "erase")
    return found


@router.get("erasures", response=shapes.ErasureList, url_name="erasures")
def erasures(request: HttpRequest, limit: int = Query(50, ge=1, le=ROWS_AT_ONCE)) -> HttpResponse:
    """List the team's erasures, newest first. A key needs the scope `erase`."""
    rows = Erasure.objects.filter(team=team_to(request, "erase")).select_related("job")
    listed = [describe_erasure(row) for row in rows.order_by("-created")[:limit]]
    return json_answer({"erasures": listed})


@router.post(
    "erasures",
    response={200: shapes.ScopeOut, 202: shapes.ErasureOut},
    url_name="erasures",
)
@done_once
def erase(request: HttpRequest, wanted: shapes.ErasureIn) -> HttpResponse:
    """Erase what a rule names, with everything made of it (202), or count it (200). A key needs the
    scope `erase`. 409 if a legal hold forbids it, which a count only names; 422 if nothing is
    stored under this name."""
    team = team_to(request, "erase")
    rule = ErasureRule(Erasure.Kind(wanted.kind), wanted.value)
    return _answer(request, team, rule, reason=wanted.reason, dry_run=wanted.dry_run)


def _answer(
    request: HttpRequest, team: Team, rule: ErasureRule, *, reason: str, dry_run: bool
) -> HttpResponse:
    try:
        sessions = sessions_of(team, rule)
        if dry_run:
            return json_answer(describe_scope(scope_of(team, rule, sessions)))
        made = begin(team, rule, sessions, actor_of(request), reason)
    except NothingToErase as error:
        raise Refusal(422, "Nothing to erase", str(error), field="/value") from None
    except (Held, LastOwner) as error:
        title = "On hold" if isinstance(error, Held) else "Last owner"
        raise Refusal(409, title, str(error)) from None
    address = reverse("api:erasure", args=[made.pk])
    return json_answer(describe_erasure(made), 202, {"Location": address})


@router.get("erasures/{uuid:erasure_id}", response=shapes.ErasureOut, url_name="erasure")
def erasure(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Get an erasure, with its receipt once it is done. A key needs the scope `erase`."""
    return json_answer(describe_erasure(erasure_of(request, erasure_id)))


@router.post(
    "erasures/{uuid:erasure_id}/verify",
    response=shapes.ReceiptVerdictOut,
    url_name="erasure_verify",
)
def verify(
    request: HttpRequest,
    erasure_id: UUID,
    receipt: dict[str, Any] = Body(None, description="default: the one that the server has"),
) -> HttpResponse:
    """Verify the receipt of an erasure: its signature, and that nothing it names is in the
    store."""
    row = erasure_of(request, erasure_id)
    try:
        said = receipts.parse(json.dumps(receipt) if receipt else row.receipt)
    except receipts.NoReceipt as error:
        raise Refusal(422, "Not a receipt", str(error), field="") from None
    if said["erasure"] != str(row.pk):
        raise Refusal(422, "Another receipt", "This receipt is of another erasure.", field="")
    found = receipts.verify(said)
    return json_answer({"holds": found.holds, **asdict(found), "text": str(found)})


@last.delete(
    "sessions/{path:session_id}",
    response={200: shapes.ScopeOut, 202: shapes.ErasureOut, 409: Problem},
    url_name="session",
    tags=["Erasures"],
)
@done_once
def erase_session(
    request: HttpRequest,
    session_id: str,
    reason: StorableText = Query(
        "", max_length=300, description="kept in the receipt and the audit log"
    ),
    dry_run: bool = Query(False, description="only count"),
) -> HttpResponse:
    """Erase a session, with its sub-agents and everything made of them, in a job (202). A key needs
    the scope `erase`. From then on, requests about it get 410. 409 if a legal hold forbids it."""
    found = find_session(request, session_id, packed=True)
    if found is None:
        raise Http404("no such session")
    require(request, found.team, "erase")
    rule = ErasureRule(Erasure.Kind.SESSION, str(found.pk))
    return _answer(request, found.team, rule, reason=reason, dry_run=dry_run)
