"""The guided tour over the demo: each stop is a real page, with a card that leads on."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions.access import team_of
from sessions.actions.accounts.preferences import prefer, preferred
from sessions.actions.demo.demo_tuning import NOTE
from sessions.actions.demo.tour_stops import PLACE, STOPS
from sessions.models import Revision, Run, Session, Simulation, Team
from sessions.views.accounts.login import onward
from sessions.views.web.pages import Page
from sessions.views.web.places import entry_url, step_url

STORY = "demo:long"
"""The session that goes wrong."""

_TEXT = "8417"
_AFTER = 14
"""Steps from the compaction until the agent says what it lacks."""

_STOPS = {str(at) for at in range(len(STOPS) + 1)}


@require_GET
def tour(request: HttpRequest) -> HttpResponse:
    """Lead to a stop and remember it; at 0, end the tour and go back to the page in `next`. Without
    a number, go on where it was left."""
    number = request.GET.get("stop", "")
    stop = int(number) if number in _STOPS else preferred(request).get("tour") or 1
    places = _places(team_of(request))
    assert request.user.is_authenticated
    if stop and not places:
        messages.info(request, "The tour runs over the demo sessions. Load them first.")
        return redirect("start")
    if not stop:
        prefer(request, request.user, tour=0)
        return redirect(onward(request) if "next" in request.GET else "dashboard")
    prefer(request, request.user, tour=stop)
    request.session[PLACE] = urlsplit(places[stop - 1]).path
    return redirect(f"{places[stop - 1]}#tour")


def _places(team: Team) -> Sequence[str]:
    """The address of each stop; none without the demo."""
    session = Session.objects.for_team(team).filter(external_id=STORY, demo=True).first()
    rows = Revision.objects.filter(run__session=session, run__origin=Run.Origin.RECORDED)
    removal = rows.order_by("number").first() if session else None
    if session is None or removal is None:
        return ()
    spoken = session.blocks.filter(type="text", message__role="assistant")
    said = spoken.select_related("message").filter(born=removal.step + _AFTER).first()
    made = Simulation.objects.for_team(team).filter(note=NOTE).first()
    dashboard = f"{reverse('dashboard')}?range=all"
    return (
        dashboard,
        dashboard,
        reverse("revision", args=[session.pk, "recorded", removal.number]),
        f"{reverse('why', args=[session.pk])}?{urlencode({'text': _TEXT})}",
        entry_url(session, said) if said else step_url(session, removal.step + _AFTER),
        reverse("simulation", args=[made.pk]) if made else reverse("lab"),
    )


PAGES = (Page(route="tour/", query=("stop", "next"), view=tour, name="tour"),)
