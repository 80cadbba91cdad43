"""Quotas of a team, for those who run the server."""

from __future__ import annotations

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from sessions.access import actor_of, require_operator, team_of
from sessions.actions.operations.quotas import LIMITS, set_quota, used_by
from sessions.models import Team
from sessions.views.web.pages import Page

MEGABYTE = 1_000_000
MOST = 10**15


def _limit(label: str, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label, required=False, min_value=0, max_value=MOST, help_text=help_text
    )


class QuotaForm(forms.Form):
    """Limits of a team; an empty one is none."""

    storage_bytes = forms.IntegerField(
        label="Storage in MB",
        required=False,
        min_value=0,
        max_value=MOST // MEGABYTE,
        help_text="Content as stored, compressed",
    )
    requests_minute = _limit("Requests per minute")
    requests_day = _limit("Requests per day")
    tokens_month = _limit("Tokens per month", "Tokens of model calls that agents report")

    def clean_storage_bytes(self) -> int | None:
        """Megabytes as bytes."""
        given: int | None = self.cleaned_data["storage_bytes"]
        return None if given is None else given * MEGABYTE


@require_http_methods(["GET", "POST"])
def quotas(request: HttpRequest, slug: str) -> HttpResponse:
    """Show and set the quotas of any team."""
    require_operator(request)
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise Http404("no such team")
    used = used_by(team)
    limits = {one.quota: one.limit for one in used}
    storage = limits["storage_bytes"]
    initial = limits | {"storage_bytes": None if storage is None else storage // MEGABYTE}
    form = QuotaForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        set_quota(team, {name: form.cleaned_data[name] for name in LIMITS}, actor_of(request))
        return redirect("status")
    context = {
        "section": "settings",
        "page": "status",
        "team": team_of(request),
        "of": team,
        "form": form,
        "used": used,
    }
    return render(request, "operations/quotas.html", context, status=422 if form.errors else 200)


PAGES = (
    Page(
        route="settings/server/quotas/<slug:slug>/",
        view=quotas,
        name="quotas",
        needs={"GET": None, "POST": None},
    ),
)
