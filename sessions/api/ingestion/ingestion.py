"""Ingestion: what agents sent, what was refused and why, and applying it again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from sessions.access import require, team_of, teams_of
from sessions.api.ingestion import shapes
from sessions.api.ingestion.again import CannotApply, apply_again, erase
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import RefusedRequest
from sessions.models.ingestion.counted import accepted_by_group, refused_count

DAYS_OF_COUNTS = 7
ROWS_AT_ONCE = 200

router = Router(tags=["Ingestion"])


def describe_refused(row: RefusedRequest) -> dict[str, Any]:
    """A refused request as JSON."""
    names = ("key", "kind", "session", "status", "problem", "detail", "field", "bytes", "times")
    return {
        "id": str(row.pk),
        **{name: getattr(row, name) for name in names},
        "first": row.first.isoformat(),
        "last": row.last.isoformat(),
        "applicable": bool(row.body) and row.applied is None,
        "applied": row.applied.isoformat() if row.applied else None,
    }


@router.get("ingestion", response=shapes.IngestionOut, url_name="ingestion")
def ingestion(
    request: HttpRequest, hours: int = Query(24, ge=1, le=24 * DAYS_OF_COUNTS)
) -> HttpResponse:
    """Count accepted requests, by key, agent, kind and format.

    Counts are written every two seconds, and kept for seven days.
    """
    team = team_of(request)
    accepted = [
        {
            "key": row["key"],
            "agent": row["agent"],
            "kind": row["kind"],
            "format": row["form"],
            "requests": row["all_requests"],
            "messages": row["all_messages"],
            "bytes": row["all_bytes"],
            "sessions": row["sessions"],
            "last": row["newest"].isoformat(),
        }
        for row in accepted_by_group(team, hours)
    ]
    refused = refused_count(team, hours)
    return json_answer({"hours": hours, "accepted": accepted, "refused": refused})


@router.get("ingestion/refused", response=shapes.RefusedList, url_name="refused")
def refused(request: HttpRequest, limit: int = Query(50, ge=1, le=ROWS_AT_ONCE)) -> HttpResponse:
    """List refused requests, newest first; kept for 14 days."""
    rows = RefusedRequest.objects.filter(team=team_of(request)).order_by("-last")
    return json_answer({"refused": [describe_refused(row) for row in rows[:limit]]})


def refused_of(request: HttpRequest, refused_id: UUID) -> RefusedRequest:
    """A refused request of the requester's teams, for one who may write. Raises Http404."""
    rows = RefusedRequest.objects.filter(team__in=teams_of(request), pk=refused_id)
    row = rows.select_related("team").first()
    if row is None:
        raise Http404("no such request")
    require(request, row.team, "write")
    return row


@router.post(
    "ingestion/refused/{uuid:refused_id}/apply",
    response=shapes.RefusedOut,
    url_name="refused_apply",
)
def apply(request: HttpRequest, refused_id: UUID) -> HttpResponse:
    """Apply a refused request again, once its cause is fixed; it takes effect at most once.

    409 if it was applied already, or its body was not kept. If it is refused again, the answer has
    the new problem.
    """
    row = refused_of(request, refused_id)
    try:
        return json_answer(describe_refused(apply_again(request, row)))
    except CannotApply as error:
        raise Refusal(409, "Not applied", str(error)) from None


@router.delete(
    "ingestion/refused/{uuid:refused_id}", response=shapes.RefusedOut, url_name="refused_one"
)
@done_once
def remove(request: HttpRequest, refused_id: UUID) -> HttpResponse:
    """Erase a refused request with its body."""
    row = refused_of(request, refused_id)
    answer = json_answer(describe_refused(row))
    erase(request, row)
    return answer
