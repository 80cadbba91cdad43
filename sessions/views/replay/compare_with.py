"""The choice of two sessions to compare."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from sessions.access import session_of, team_of
from sessions.actions.replay.similar_sessions import SimilarSession, suggestions
from sessions.models import Session
from sessions.models.record.demo_data import listed
from sessions.models.search.session_names import with_name
from sessions.views.web.pages import Page

FOUND = 20
"""Most sessions found by name."""


@require_GET
def compare_with(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Choose the session to compare with: those of the same task first, or by name."""
    session = session_of(request, session_id)
    words = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    context = {
        "section": "sessions",
        "team": session.team,
        "session": session,
        "session_name": str(session),
        "q": words,
        "found": _named(session, words) if words else suggestions(session),
    }
    return render(request, "replay/compare_with.html", context)


def _named(session: Session, words: str) -> list[SimilarSession]:
    its = listed(session.team_id, demo=session.demo)
    rows = Session.objects.for_team(session.team).filter(its).exclude(pk=session.pk)
    rows = rows.defer("sparkline")
    named = with_name(
        rows,
        [session.team_id],
        words,
        names=("title", "external_id"),
        order=("-changed",),
        limit=FOUND,
    )
    return [SimilarSession(one, "") for one in named[:FOUND]]


@require_GET
def compare_chosen(request: HttpRequest) -> HttpResponse:
    """Compare the sessions selected in the list; of one, choose the other."""
    team = team_of(request)
    chosen = [
        found
        for name in dict.fromkeys(request.GET.getlist("session")[:3])
        if (found := Session.objects.named_in(team, name.replace("\x00", ""))) is not None
    ]
    if len(chosen) == 2:
        return redirect("compare", chosen[0].pk, chosen[1].pk)
    if len(chosen) == 1:
        return redirect("compare_with", chosen[0].pk)
    context = {"section": "sessions", "team": team, "found": [], "many": len(chosen)}
    return render(request, "replay/compare_with.html", context)


PAGES = (
    Page(route="compare/", query=("session",), view=compare_chosen, name="compare_chosen"),
    Page(
        route="sessions/<uuid:session_id>/compare/",
        query=("q",),
        view=compare_with,
        name="compare_with",
    ),
)
