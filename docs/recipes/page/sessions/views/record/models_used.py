"""Models used: which models a team's sessions used."""

from __future__ import annotations

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from sessions.access import team_of
from sessions.models import Session
from sessions.views.web.pages import Link, Page


@require_GET
def models_used(request: HttpRequest) -> HttpResponse:
    """How many sessions each model has, the most used first."""
    team = team_of(request)
    rows = Session.objects.for_team(team).exclude(model="").values("model")
    rows = rows.annotate(many=Count("pk"), steps=Sum("step_count")).order_by("-many", "model")
    context = {"section": "models_used", "team": team, "rows": rows}
    return render(request, "record/models_used.html", context)


PAGES = (
    Page(
        route="models-used/",
        view=models_used,
        name="models_used",
        link=Link(95, "Models used", icon="sessions", keys="g o", section="models_used"),
    ),
)
