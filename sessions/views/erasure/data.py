"""Settings, Data: erase, keep, hold, and the receipts of what was erased."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from sessions.access import actor_of, require, team_to, teams_of
from sessions.actions.accounts.members import LastOwner
from sessions.actions.erasure import archiving, holds, receipts, retention, rows
from sessions.actions.erasure.archiving import archives_of
from sessions.actions.erasure.holds import Held
from sessions.actions.erasure.requests import ErasureRule, NothingToErase, Scope, begin, scope_of
from sessions.actions.erasure.rules import sessions_of
from sessions.api.erasure.erasures import erasure_of, state_of
from sessions.models import Erasure, Hold, Retention, Session, Team
from sessions.views.erasure.data_forms import (
    ArchivingForm,
    EraseForm,
    HoldForm,
    RetentionForm,
)
from sessions.views.web.pages import Page
from sessions.views.web.paging import page

ASKED = ("kind", "value")
HOLD_IDS, RETENTION_IDS, ARCHIVING_IDS = "hold_%s", "retention_%s", "archiving_%s"


@never_cache
@require_GET
def data(request: HttpRequest) -> HttpResponse:
    """Show the page; with a kind and a value, count what their erasure would delete."""
    team = team_to(request, "erase")
    if not request.GET.get("value"):
        return _page(request, team)
    form = EraseForm(request.GET)
    asked = {name: form[name].value() for name in ASKED if not form[name].errors}
    rule = _rule(asked)
    if rule is None:
        return _page(request, team, form=form, status=400)
    try:
        found = scope_of(team, rule, sessions_of(team, rule))
    except NothingToErase as error:
        return _page(request, team, form=EraseForm(initial=asked), problem=str(error), status=409)
    return _page(request, team, form=EraseForm(initial=asked), scope=found)


def _rule(asked: dict[str, Any]) -> ErasureRule | None:
    if not asked.get("value") or asked.get("kind") not in Erasure.Kind.values:
        return None
    return ErasureRule(Erasure.Kind(asked["kind"]), str(asked["value"]).replace("\x00", ""))


def _page(
    request: HttpRequest,
    team: Team,
    *,
    form: EraseForm | None = None,
    hold_form: HoldForm | None = None,
    retention_form: RetentionForm | None = None,
    scope: Scope | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    made = Erasure.objects.filter(team=team).select_related("job").order_by("-created")
    shown = page(made, request.GET.get("cursor", ""), "created", size=20)
    context = {
        "section": "settings",
        "page": "data",
        "team": team,
        "form": form or EraseForm(),
        "scope": scope,
        "counts": [(rows.said(name, many), many) for name, many in scope.rows.items() if many]
        if scope
        else [],
        "holds": [(row, _held_name(row)) for row in holds.in_force(team)],
        "retention_form": retention_form or _kept(team),
        "archiving_form": _archived(team),
        "archives": archives_of(team),
        "hold_form": hold_form or HoldForm(auto_id=HOLD_IDS),
        "rows": [(row, state_of(row), row.counts) for row in shown.rows],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
        **more,
    }
    return render(request, "erasure/data.html", context, status=status)


def _kept(team: Team) -> RetentionForm:
    found = Retention.objects.filter(team=team).first() or Retention()
    initial = {"content_days": found.content_days, "session_days": found.session_days}
    return RetentionForm(initial=initial, auto_id=RETENTION_IDS)


def _archived(team: Team) -> ArchivingForm:
    found = Retention.objects.filter(team=team).first() or Retention()
    return ArchivingForm(initial={"days": found.archive_days}, auto_id=ARCHIVING_IDS)


def _held_name(row: Hold) -> str:
    if row.kind == Hold.Kind.SESSION:
        found = Session.objects.filter(team=row.team_id, pk=row.session or UUID(int=0)).first()
        return str(found or row.session)
    return row.task if row.kind == Hold.Kind.TASK else "everything"


def _back(team: Team) -> HttpResponse:
    return redirect(f"{reverse('data')}?team={team.slug}")


@require_POST
def erase(request: HttpRequest) -> HttpResponse:
    """Begin an erasure that was counted before, and confirmed by typing its value."""
    team = team_to(request, "erase")
    form = EraseForm(request.POST)
    if not form.is_valid():
        return _page(request, team, form=form, status=422)
    rule = _rule(form.cleaned_data)
    assert rule is not None
    try:
        sessions = sessions_of(team, rule)
        if request.POST.get("sure", "").strip() != rule.value.strip():
            problem = "Type the same value again to confirm. Nothing was erased."
            scope = scope_of(team, rule, sessions)
            return _page(request, team, form=form, scope=scope, problem=problem, status=422)
        begin(team, rule, sessions, actor_of(request), form.cleaned_data["reason"])
    except (NothingToErase, Held, LastOwner) as error:
        return _page(request, team, form=form, problem=str(error), status=409)
    messages.success(request, "The erasure has begun. Its receipt will be in the list below.")
    return _back(team)


@require_POST
def retain(request: HttpRequest) -> HttpResponse:
    """Count what a retention would erase; save it once that was seen."""
    team = team_to(request, "erase")
    form = RetentionForm(request.POST, auto_id=RETENTION_IDS)
    if not form.is_valid():
        return _page(request, team, retention_form=form, status=422)
    days = form.cleaned_data["content_days"], form.cleaned_data["session_days"]
    if "sure" not in request.POST:
        due = retention.due(team, *days, timezone.now())
        return _page(request, team, retention_form=form, due=due, days=days)
    retention.change(team, *days, actor_of(request))
    messages.success(request, "Saved. What is older is erased within a minute, and every day.")
    return _back(team)


@require_POST
def archive(request: HttpRequest) -> HttpResponse:
    """Count what a rule of archiving would pack; save it once that was seen."""
    team = team_to(request, "erase")
    form = ArchivingForm(request.POST, auto_id=ARCHIVING_IDS)
    if not form.is_valid():
        return _page(request, team, archiving_form=form, status=422)
    days = form.cleaned_data["days"]
    if "sure" not in request.POST:
        found = archiving.cold(team, days, timezone.now())
        return _page(request, team, archiving_form=form, cold=found, days=days)
    archiving.change(team, days, actor_of(request))
    messages.success(request, "Saved. Cold sessions are archived within a minute, and every day.")
    return _back(team)


@require_POST
def hold(request: HttpRequest) -> HttpResponse:
    """Put a session, a task or the team on hold."""
    team = team_to(request, "erase")
    form = HoldForm(request.POST, auto_id=HOLD_IDS)
    if not form.is_valid():
        return _page(request, team, hold_form=form, status=422)
    given = form.cleaned_data
    kind, value = Hold.Kind(given["kind"]), given["value"].replace("\x00", "")
    try:
        holds.hold(team, kind, value, actor_of(request), given["reason"])
    except holds.NothingToHold as error:
        form.add_error("value", str(error))
        return _page(request, team, hold_form=form, status=422)
    messages.success(request, "It is on hold: nothing of it is erased until you release it.")
    return _back(team)


@require_POST
def release(request: HttpRequest, hold_id: UUID) -> HttpResponse:
    """Release a hold."""
    row = Hold.objects.filter(team__in=teams_of(request), pk=hold_id).select_related("team").first()
    if row is None:
        raise Http404("no such hold")
    require(request, row.team, "erase")
    holds.release(row, actor_of(request), request.POST.get("reason", "").replace("\x00", ""))
    messages.success(request, "The hold was released.")
    return _back(row.team)


@require_POST
def verify(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Verify the receipt of an erasure, and say what was found."""
    row = erasure_of(request, erasure_id)
    if not row.receipt:
        messages.warning(request, "It is not finished yet, so there is no receipt.")
        return _back(row.team)
    found = receipts.verify(receipts.parse(row.receipt))
    if found.holds:
        messages.success(request, f"The receipt holds. {found}")
    else:
        messages.warning(request, f"The receipt does not hold. {found}")
    return _back(row.team)


@require_GET
def receipt(request: HttpRequest, erasure_id: UUID) -> HttpResponse:
    """Download a receipt."""
    row = erasure_of(request, erasure_id)
    if not row.receipt:
        raise Http404("no receipt yet")
    headers = {
        "Content-Disposition": f'attachment; filename="erasure-{row.pk}.json"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(row.receipt, content_type="application/json", headers=headers)


PAGES = (
    Page(
        route="settings/data/",
        query=("kind", "value", "cursor"),
        view=data,
        name="data",
        needs={"GET": "erase"},
    ),
    Page(route="settings/data/erase/", view=erase, name="data_erase", needs={"POST": "erase"}),
    Page(
        route="settings/data/retention/",
        view=retain,
        name="data_retention",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/data/archiving/",
        view=archive,
        name="data_archiving",
        needs={"POST": "erase"},
    ),
    Page(route="settings/data/holds/", view=hold, name="data_hold", needs={"POST": "erase"}),
    Page(
        route="settings/data/holds/<uuid:hold_id>/release/",
        view=release,
        name="data_release",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/data/<uuid:erasure_id>/verify/",
        view=verify,
        name="data_verify",
        needs={"POST": "erase"},
    ),
    Page(
        route="settings/data/<uuid:erasure_id>/receipt/",
        view=receipt,
        name="data_receipt",
        needs={"GET": "erase"},
    ),
)
