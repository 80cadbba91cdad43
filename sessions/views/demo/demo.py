"""Load and remove the demo sessions, each in a job."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from sessions.access import actor_of, team_to
from sessions.actions.accounts import audit
from sessions.actions.demo.demo import KIND, REMOVAL
from sessions.actions.jobs.jobs import enqueue
from sessions.views.web.pages import Page


@require_POST
def load(request: HttpRequest) -> HttpResponse:
    """Queue the job that loads the demo sessions, and show it."""
    return _queued(request, KIND, "demo.loaded")


@require_POST
def remove(request: HttpRequest) -> HttpResponse:
    """Queue the job that removes them and all that was made of them, and show it."""
    return _queued(request, REMOVAL, "demo.removal")


def _queued(request: HttpRequest, kind: str, action: str) -> HttpResponse:
    if kind not in settings.JOB_KINDS:
        raise Http404("this version has no demo")
    team = team_to(request, "write")
    with transaction.atomic():
        job = enqueue(team, kind, {}, dedupe=kind)
        audit.note(team, actor_of(request), action, str(job.pk))
    return redirect("job", job.pk)


PAGES = (
    Page(route="start/demo/", view=load, name="demo", needs={"POST": "write"}),
    Page(route="start/demo/remove/", view=remove, name="demo_remove", needs={"POST": "write"}),
)
