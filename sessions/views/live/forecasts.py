"""What comes next in a live session, as a bar above its replay."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from sessions.access import allowed, session_of
from sessions.actions.live.forecasts import NothingToForecast, facts_at_risk, forecast
from sessions.actions.web.apart import FailedApart, NotInTime
from sessions.models import Run, Session
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import MissingBlob
from sessions.views.live.low_recall import low_recall
from sessions.views.web.pages import Page
from sessions.views.web.places import step_url


def shown_forecast(session: Session) -> dict[str, Any]:
    """What the bar says of a session that runs: its forecast, and its recall if that is low."""
    return {"found": forecast(session), "recall": low_recall(session)} if session.live else {}


@require_GET
def forecast_bar(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show the next offload, when the context reaches its limit, a low recall, the use per minute,
    and a way to pause."""
    session = session_of(request, session_id)
    context = {
        "session": session,
        **shown_forecast(session),
        **_age(session, request.GET.get("listed_at", "")),
        "may": session.live and allowed(request, session.team, "accept"),
    }
    return render(request, "live/forecast.html", context)


def _age(session: Session, listed_at: str) -> dict[str, Any]:
    """The step at which the page's facts at risk were listed, and how many steps ago."""
    if not (listed_at.isascii() and listed_at.isdigit()) or len(listed_at) > 9:
        return {}
    return {"listed_at": int(listed_at), "behind": max(session.step_count - int(listed_at), 0)}


@require_GET
def risk(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Show the facts that the policy would take out of the context until its limit, or, if that is
    far, until the next offload."""
    session = session_of(request, session_id)
    context = {"session": session, **_age(session, str(session.step_count))}
    try:
        its = forecast(session)
        found = facts_at_risk(session, its)
        run = Run.of(session, Run.Origin.MANAGED)
        context["found"], context["until"] = found, its.until
        context["facts"] = [
            (one, step_url(session, one.step, run, one.block.removeprefix("m").removesuffix(".0")))
            for one in (found.facts if found else ())
        ]
    except (NothingToForecast, MissingBlob, DamagedBlob) as error:
        context["problem"] = str(error)
    except FailedApart:
        context["problem"] = "The simulation failed. Simulate the policy in the lab."
    except NotInTime as error:
        context["problem"] = (
            "Other simulations are running. List again in a few seconds."
            if error.busy
            else "The simulation took too long. Simulate the policy in the lab."
        )
    return render(request, "live/risk.html", context)


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/forecast/",
        view=forecast_bar,
        name="session_forecast",
        query=("listed_at",),
    ),
    Page(route="sessions/<uuid:session_id>/forecast/facts/", view=risk, name="facts_at_risk"),
)
