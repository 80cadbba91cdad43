"""What our own pages ask for, open to everybody: a replay as data."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from sessions.api import replay, shapes

router = Router(tags=["Replay"])

LAST = 999_999_999
RUN = "recorded, served, the name of a policy that was simulated, or the id of a run"


@router.get("sessions/{path:session_id}/manifest", response=dict, url_name="manifest")
def manifest(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),  # noqa: ARG001
    since: str = Query("", description="`next` of an earlier one: what changed after it"),  # noqa: ARG001
) -> HttpResponse:
    """Gives all entries of a run in context order, figures per step, and events.

    An entry stands at step N where `from` <= N and (`to` = 0 or N < `to`).
    """
    return replay.manifest(request, session_id)


@router.get("sessions/{path:session_id}/previews", response=dict, url_name="previews")
def previews(  # noqa: PLR0913
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),  # noqa: ARG001
    start: int = Query(0, alias="from", ge=0, le=LAST),  # noqa: ARG001
    end: int | None = Query(None, alias="to", ge=0, le=LAST),  # noqa: ARG001
) -> HttpResponse:
    """Gives one line each for the entries [from, to) of a run, at most 500 of them."""
    return replay.previews(request, session_id)


@router.get("sessions/{path:session_id}/entry", response=dict, url_name="entry")
def entry(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),  # noqa: ARG001
    i: int = Query(0, ge=0, le=LAST, description="place in context order"),  # noqa: ARG001
) -> HttpResponse:
    """Gives one entry of a run with its content and every version it had."""
    return replay.entry(request, session_id)


@router.get("sessions/{path:session_id}/diff", response=dict, url_name="diff")
def diff(  # noqa: PLR0913
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),  # noqa: ARG001
    a: int = Query(1, ge=0, le=LAST, description="a step"),  # noqa: ARG001
    b: int = Query(1, ge=0, le=LAST, description="another"),  # noqa: ARG001
) -> HttpResponse:
    """Tells what stayed, left, came or was replaced between the contexts of two steps."""
    return replay.diff(request, session_id)
