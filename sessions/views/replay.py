"""The replay and diff pages: a shell whose islands fetch everything else."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions.api.access import session_of
from sessions.models import Session


def _addresses(session: Session) -> dict[str, str]:
    names = ("manifest", "previews", "entry", "diff", "simulations")
    urls = {f"{name}_url": reverse(f"api:{name}", args=[session.pk]) for name in names}
    return urls | {
        "session_url": reverse("replay", args=[session.pk]),
        "sessions_url": reverse("sessions"),
        "jobs_url": reverse("jobs"),
    }


@require_GET
def replay(request: HttpRequest, session_id: UUID, step: int | None = None) -> HttpResponse:
    """What the model could see at every step of a session; without a step, at the last one."""
    session = session_of(request, session_id)
    props: dict[str, Any] = _addresses(session) | {
        "session_id": str(session.pk),
        "step": step,
        "run": request.GET.get("run", "recorded"),
    }
    return render(request, "sessions/replay.html", {"session": session, "props": props})


@require_GET
def diff(request: HttpRequest, session_id: UUID, a: int, b: int) -> HttpResponse:
    """The contexts of two steps of a session against each other."""
    session = session_of(request, session_id)
    props: dict[str, Any] = _addresses(session) | {
        "session_id": str(session.pk),
        "a": a,
        "b": b,
        "run": request.GET.get("run", "recorded"),
    }
    return render(request, "sessions/diff.html", {"session": session, "props": props})
