"""What agents sent: accepted requests by key and agent, and refused ones with their reasons."""

from __future__ import annotations

import zlib
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.redaction.redact import redact
from sessions.access import allowed, team_of, teams_of
from sessions.actions.ingestion import arrivals
from sessions.api.ingestion.again import CannotApply, apply_again, erase
from sessions.api.ingestion.ingestion import refused_of
from sessions.models import Key, RefusedRequest, Session
from sessions.models.ingestion.counted import accepted_by_group, refused_count
from sessions.models.masking.masking import rules_of
from sessions.views.web.pages import Page
from sessions.views.web.paging import page

HOURS = 24
SHOWN_BYTES = 20_000
"""Of a refused body, on its page."""


@require_GET
def ingestion(request: HttpRequest) -> HttpResponse:
    """Show accepted requests of a day, and refused ones, newest first."""
    team = team_of(request)
    accepted = accepted_by_group(team, HOURS)
    shown = page(
        RefusedRequest.objects.filter(team=team).defer("body"),
        request.GET.get("cursor", ""),
        "last",
        size=20,
    )
    names = dict(Key.objects.filter(team=team).values_list("prefix", "name"))
    context = {
        "section": "settings",
        "page": "ingestion",
        "team": team,
        "may": allowed(request, team, "write"),
        "accepted": [row | {"name": names.get(row["key"], "")} for row in accepted],
        "requests": sum(row["all_requests"] for row in accepted),
        "bytes": sum(row["all_bytes"] for row in accepted),
        "refused_count": refused_count(team, HOURS),
        "hours": HOURS,
        "rows": [(row, names.get(row.key, "")) for row in shown.rows],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
        "kept_days": arrivals.REFUSED_KEPT.days,
    }
    return render(request, "ingestion/ingestion.html", context)


@require_GET
def refused(request: HttpRequest, refused_id: UUID) -> HttpResponse:
    """Show one refused request with its body, secrets masked."""
    row = RefusedRequest.objects.filter(team__in=teams_of(request), pk=refused_id).first()
    if row is None:
        raise Http404("no such request")
    # Decompress no more than is shown, with a margin for a secret at the edge.
    read = zlib.decompressobj().decompress(row.body, 2 * SHOWN_BYTES) if row.body else b""
    text = redact(read.decode("utf-8", "replace"), rules_of(row.team_id)).text
    context = {
        "section": "settings",
        "page": "ingestion",
        "team": row.team,
        "may": allowed(request, row.team, "write"),
        "row": row,
        "key": Key.objects.filter(team=row.team, prefix=row.key).first() if row.key else None,
        "body": text[:SHOWN_BYTES],
        "cut": len(text) > SHOWN_BYTES or len(read) == 2 * SHOWN_BYTES,
        "session": Session.objects.for_team(row.team).filter(external_id=row.session).first(),
    }
    return render(request, "ingestion/refused.html", context)


@require_POST
def apply(request: HttpRequest, refused_id: UUID) -> HttpResponse:
    """Apply a refused request again."""
    row = refused_of(request, refused_id)
    try:
        done = apply_again(request, row)
    except CannotApply as error:
        messages.warning(request, str(error))
    else:
        if done.applied:
            messages.success(request, f"Applied to {row.session}.")
        else:
            messages.warning(request, f"Refused again: {done.detail}")
    return redirect(reverse("refused", args=[row.pk]))


@require_POST
def remove(request: HttpRequest, refused_id: UUID) -> HttpResponse:
    """Erase a refused request with its body."""
    row = refused_of(request, refused_id)
    erase(request, row)
    messages.success(request, "The request and its body were erased.")
    return redirect(f"{reverse('ingestion')}?team={row.team.slug}")


PAGES = (
    Page(route="settings/ingestion/", query=("cursor",), view=ingestion, name="ingestion"),
    Page(route="settings/ingestion/<uuid:refused_id>/", view=refused, name="refused"),
    Page(
        route="settings/ingestion/<uuid:refused_id>/apply/",
        view=apply,
        name="refused_apply",
        needs={"POST": "write"},
    ),
    Page(
        route="settings/ingestion/<uuid:refused_id>/erase/",
        view=remove,
        name="refused_erase",
        needs={"POST": "write"},
    ),
)
