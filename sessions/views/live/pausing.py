"""Pause and resume a live agent from its page or the live page."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from sessions.access import actor_of, session_of
from sessions.actions.live.requests.pausing import REASON_CHARS, NotPausable, pause, resume
from sessions.views.web.pages import Page


@require_POST
def pausing(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Pause or resume a session; returns to the page of the form."""
    session = session_of(request, session_id, "accept")
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:REASON_CHARS]
    resumes = request.POST.get("act") == "resume"
    if not reason:
        messages.warning(request, "Give a reason. The audit log keeps it.")
    else:
        try:
            act = resume if resumes else pause
            act(session, actor_of(request), reason, timezone.now())
        except NotPausable as error:
            messages.warning(request, str(error))
        else:
            done = "goes on with its next request" if resumes else "waits at its next model call"
            messages.success(request, f"{session} {done}.")
    if request.POST.get("to") == "live":
        return redirect(f"{reverse('live')}?team={session.team.slug}")
    return redirect("replay", session.pk)


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/pause/",
        view=pausing,
        name="pausing",
        needs={"POST": "accept"},
    ),
)
