"""The page that exports a session."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from sessions.access import session_of
from sessions.api.replay.exports import Format, download, may_unmask
from sessions.api.replay.heads import run_label, run_name
from sessions.api.web.problems import Refusal
from sessions.models.record.shown_runs import shown_origin
from sessions.models.record.values import ContentErased
from sessions.views.web.pages import Page


@require_http_methods(["GET", "POST"])
def export_page(request: HttpRequest, session_id: UUID) -> HttpResponseBase:
    """Offer the formats; send the file."""
    session = session_of(request, session_id)
    asked, problem, status = request.POST, "", 200
    if request.method == "POST":
        try:
            form: Format = "jsonl" if asked.get("format") == "jsonl" else "html"
            run = asked.get("run", "")
            return download(request, session, form, run, masked="masked" in asked)
        except Refusal as error:
            problem, status = error.detail, error.status
        except ContentErased as error:
            problem, status = str(error), 410
        except Http404:
            problem, status = "There is no such run any more. Choose another one.", 404
    runs = session.runs.select_related("policy_version__policy").order_by("created")
    context = {
        "section": "sessions",
        "session": session,
        "session_name": str(session),
        "runs": [(run_name(run), run.origin, run_label(run)) for run in runs],
        "shown": asked.get("run") or shown_origin(session),
        "format": asked.get("format", "html"),
        "masked": "masked" in asked or not asked,
        "problem": problem,
        "show_masked": session.team.show_masked,
        "may_unmask": may_unmask(request, session),
    }
    return render(request, "replay/export.html", context, status=status)


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/export/",
        view=export_page,
        name="session_export",
        needs={"GET": "read", "POST": "read"},
    ),
)
