"""Pins: messages that stay verbatim in every managed context."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router

from sessions.access import actor_of, session_of
from sessions.actions.live.requests import pins as actions
from sessions.api.live import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once, fold_ready
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import BIGGEST
from sessions.models import Session

router = Router(tags=["Pins"])


def _answer_pins(session: Session, status: int = 200) -> HttpResponse:
    seqs = session.pins.order_by("message__seq").values_list("message__seq", flat=True)
    return json_answer({"pins": list(seqs)}, status)


@router.get("sessions/{path:session_id}/pins", response=shapes.Pins, url_name="pins")
def pins(request: HttpRequest, session_id: str) -> HttpResponse:
    """List the pinned messages."""
    return _answer_pins(session_of(request, session_id))


@router.post("sessions/{path:session_id}/pins", response={201: shapes.Pins}, url_name="pins")
@fold_ready
@done_once
def pin(request: HttpRequest, session_id: str, wanted: shapes.PinIn) -> HttpResponse:
    """Pin a message. Content that a policy removed returns."""
    session = session_of(request, session_id)
    try:
        actions.pin(session, wanted.seq, actor_of(request))
    except actions.CannotPin as error:
        raise Refusal(422, "Cannot be pinned", str(error), field="/seq") from None
    return _answer_pins(session, 201)


@router.delete("sessions/{path:session_id}/pins/{seq}", response=shapes.Pins, url_name="pin")
@fold_ready
@done_once
def unpin(
    request: HttpRequest, session_id: str, seq: int = Path(..., ge=1, le=BIGGEST)
) -> HttpResponse:
    """Unpin a message."""
    session = session_of(request, session_id)
    if not actions.unpin(session, seq, actor_of(request)):
        raise Http404("not pinned")
    return _answer_pins(session)
