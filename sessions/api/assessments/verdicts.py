"""What a finished session cost and lost, as JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Router, Schema

from sessions.access import session_of
from sessions.actions.assessments.lost_facts import LostBy, lost_by_removal
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.actions.reviews.losses import seen_run
from sessions.actions.web.verdicts import Tone
from sessions.models import Run

router = Router(tags=["Sessions"])


class LostOut(Schema):
    """A removal after which lost facts were needed again, and how many."""

    revision: int
    step: int
    lost_facts: int
    url: str


class VerdictOut(Schema):
    """The verdict on a session, as its replay opens with it; null while it goes on, or before it is
    assessed.

    `lost_facts` counts the lost facts that were needed again: the sum over `lost`, which the
    dashboard adds up. Null if unknown, or if nothing left the context.
    """

    sentence: str | None
    detail: str
    tone: Tone | None
    lost_facts: int | None
    lost: list[LostOut]


@router.get("sessions/{path:session_id}/verdict", response=VerdictOut, url_name="verdict")
def verdict(request: HttpRequest, session_id: str) -> dict[str, Any]:
    """Get what a finished session cost and lost, with how much could be avoided."""
    session = session_of(request, session_id)
    run = seen_run(session)
    managed = run is not None and run.origin == Run.Origin.MANAGED
    found = verdict_on_session(session, managed=managed)
    if found is None:
        return {"sentence": None, "detail": "", "tone": None, "lost_facts": None, "lost": []}
    return {
        "sentence": found.sentence,
        "detail": found.detail,
        "tone": found.tone,
        "lost_facts": found.lost_facts,
        "lost": [_removal(request, one) for one in lost_by_removal(session)],
    }


def _removal(request: HttpRequest, one: LostBy) -> dict[str, Any]:
    revision = one.revision
    args = [revision.run.session_id, revision.run.origin, revision.number]
    return {
        "revision": revision.number,
        "step": revision.step,
        "lost_facts": one.facts,
        "url": request.build_absolute_uri(reverse("revision", args=args)),
    }
