"""The audit log of a team, newest first, and its export."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from sessions.access import actor_of, team_to
from sessions.actions.accounts.audit import note
from sessions.actions.accounts.chain import line_of
from sessions.models import AuditEntry, Team
from sessions.views.web.pages import Page
from sessions.views.web.paging import page

CHOICES = ("action", "actor")
"""Filters of the log, named like the fields and query parameters."""


def _chosen(asked: Any) -> dict[str, str]:
    found = {name: asked.get(name, "").replace("\x00", "") for name in CHOICES}
    return {name: value for name, value in found.items() if value}


@require_GET
def audit(request: HttpRequest) -> HttpResponse:
    """Show the team's log, filtered by action or actor."""
    team = team_to(request, "audit")
    chosen = _chosen(request.GET)
    entries = AuditEntry.objects.filter(team=team)
    shown = page(entries.filter(**chosen), request.GET.get("cursor", ""), "at")
    context = {
        "section": "settings",
        "page": "audit",
        "team": team,
        "rows": [(row, _details(row)) for row in shown.rows],
        "chosen": chosen,
        "choices": [(name, _values(entries, name), chosen.get(name, "")) for name in CHOICES],
        "newer_url": _address(chosen, shown.newer),
        "older_url": _address(chosen, shown.older),
    }
    return render(request, "accounts/audit.html", context)


def _values(entries: QuerySet[AuditEntry], name: str) -> list[str]:
    return list(entries.order_by(name).values_list(name, flat=True).distinct())


def _address(chosen: dict[str, str], cursor: str) -> str:
    return f"?{urlencode({**chosen, 'cursor': cursor})}" if cursor else ""


def _details(row: AuditEntry) -> list[tuple[str, str]]:
    def text(value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(map(text, value)) or "–"
        if isinstance(value, dict):
            return ", ".join(f"{_words(key)} {text(one)}" for key, one in value.items()) or "–"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "–" if value is None or value == "" else str(value)

    return [(_words(name), text(value)) for name, value in row.detail.items()]


def _words(name: str) -> str:
    return name.replace("_", " ")


@require_POST
def export(request: HttpRequest) -> HttpResponse:
    """Export the log with the page's filters as JSON lines, oldest first; the export is audited
    too."""
    team = team_to(request, "audit")
    chosen = _chosen(request.POST)
    with transaction.atomic():
        note(team, actor_of(request), "export.made", "audit log", only=sorted(chosen.values()))
    lines = _lines(team, chosen)
    name = f"audit-{team.slug}-{timezone.now():%Y-%m-%d}.jsonl"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
    }
    return HttpResponse(lines, content_type="application/jsonl", headers=headers)


def _lines(team: Team, chosen: dict[str, str]) -> bytes:
    rows = AuditEntry.objects.filter(team=team, **chosen).order_by("number")
    return b"".join(json.dumps(line_of(row)).encode() + b"\n" for row in rows.iterator(2000))


PAGES = (
    Page(
        route="settings/audit/",
        query=(*CHOICES, "cursor"),
        view=audit,
        name="audit",
        needs={"GET": "audit"},
    ),
    Page(route="settings/audit/export/", view=export, name="audit_export", needs={"POST": "audit"}),
)
