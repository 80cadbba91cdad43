"""Pins: messages that stay verbatim in every managed context."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router

from sessions.actions import pins as actions
from sessions.api import incoming, shapes
from sessions.api.access import actor_of, session_of
from sessions.api.answers import done_once, fold_ready, told
from sessions.api.problems import Refusal
from sessions.models import Session

router = Router(tags=["Pins"])


def _told(session: Session, status: int = 200) -> HttpResponse:
    seqs = session.pins.order_by("message__seq").values_list("message__seq", flat=True)
    return told({"pins": list(seqs)}, status)


@router.get("sessions/{path:session_id}/pins", response=shapes.Pins, url_name="pins")
def pins(request: HttpRequest, session_id: str) -> HttpResponse:
    """Lists the pinned messages."""
    return _told(session_of(request, session_id))


@router.post("sessions/{path:session_id}/pins", response={201: shapes.Pins}, url_name="pins")
@fold_ready
@done_once
def pin(request: HttpRequest, session_id: str, wanted: incoming.PinWanted) -> HttpResponse:
    """Pins a message. What a policy had taken out of it stands again."""
    session = session_of(request, session_id)
    try:
        actions.pin(session, wanted.seq, actor_of(request))
    except actions.CannotPin as error:
        raise Refusal(422, "Cannot be pinned", str(error), field="/seq") from None
    return _told(session, 201)


@router.delete("sessions/{path:session_id}/pins/{seq}", response=shapes.Pins, url_name="pin")
@fold_ready
@done_once
def unpin(
    request: HttpRequest, session_id: str, seq: int = Path(..., ge=1, le=incoming.BIGGEST)
) -> HttpResponse:
    """Lets the policy have a message again."""
    session = session_of(request, session_id)
    if not actions.unpin(session, seq, actor_of(request)):
        raise Http404("not pinned")
    return _told(session)
