"""Policies: versions, and the values of each version with their origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from compaction.advice.lint import remarks
from compaction.policies.origin import SettingChange, changes
from compaction.policies.policy import InvalidPolicy, from_dict
from compaction.policies.presets import PRESETS
from sessions.access import allowed, team_of
from sessions.actions.policies.policies import UnknownPolicy, in_use, named_policy, named_version
from sessions.actions.reviews import agreement
from sessions.models import Policy as PolicyRow
from sessions.models import PolicyVersion, Simulation, Team
from sessions.models.policies.policy_documents import base_name, preset_document, readable, yaml_of
from sessions.models.policies.policy_use import (
    PolicyUse,
    UsePlace,
    was_reviewed,
)
from sessions.models.policies.suggested import suggested
from sessions.views.policies.policy_list import PolicyEffects
from sessions.views.policies.policy_values import SettingTexts, sections
from sessions.views.web.pages import Page
from sessions.views.web.paging import page

YAML = "application/yaml"
SIMULATIONS = 5
"""Simulations listed on a version's page, newest first."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version in a policy's list, with its changes against the previous one."""

    version: PolicyVersion
    places: list[UsePlace]
    sessions: int
    changes: tuple[SettingChange, ...] | None
    simulations: list[Simulation]


@require_GET
def policy(request: HttpRequest, name: str) -> HttpResponse:
    """Show a policy's versions, newest first, with the changes in each."""
    team = team_of(request)
    row = found(team, name)
    tried = Prefetch("simulations", Simulation.objects.order_by("-created")[:SIMULATIONS], "tried")
    rows = row.versions.select_related("author", "policy").prefetch_related(tried)
    shown = page(rows, request.GET.get("cursor", ""), "created")
    standing = in_use(team)
    newest = row.versions.select_related("policy").order_by("-number").first()
    value = PRESETS.get(row.name) if newest is None else readable(newest)
    base = preset_document(row.name if row.name in PRESETS else row.based_on)
    context = {
        "section": "policies",
        "team": team,
        "policy": row,
        "preset": row.name in PRESETS,
        "newest": newest,
        "effect": PolicyEffects.of(team).shown(newest),
        "based_on": row.based_on,
        "sections": [] if value is None else sections(value, SettingTexts(base, remarks(value))),
        "rows": _versions(shown.rows, standing),
        "count": row.versions.count(),
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
        "may_write": allowed(request, team, "write"),
    }
    return render(request, "policies/policy.html", context)


def found(team: Team, name: str) -> PolicyRow:
    """The team's policy with that name, or a preset. Raises Http404."""
    try:
        return named_policy(team, name)
    except UnknownPolicy:
        raise Http404("no such policy") from None


def _versions(rows: list[PolicyVersion], standing: PolicyUse) -> list[Version]:
    numbers = [one.number - 1 for one in rows]
    policies = {one.policy_id for one in rows}
    older = PolicyVersion.objects.filter(policy__in=policies, number__in=numbers)
    documents = dict(older.values_list("number", "document"))
    return [
        Version(
            one,
            standing.places(one.pk),
            standing.sessions.get(one.pk, 0),
            changes(documents[one.number - 1], one.document)
            if one.number - 1 in documents
            else None,
            list(vars(one)["tried"]),
        )
        for one in rows
    ]


def version_named(team: Team, name: str, number: int) -> PolicyVersion:
    """A version of the team's policy. Raises Http404."""
    try:
        return named_version(team, f"{name}@{number}")
    except UnknownPolicy:
        raise Http404("no such version") from None


@require_GET
def version(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Show every value of a version with origin and remarks; ?as=yaml downloads it."""
    team = team_of(request)
    shown = version_named(team, name, number)
    text = yaml_of(shown)
    if request.GET.get("as") == "yaml":
        return yaml_file(shown, text)
    standing = in_use(team)
    value = readable(shown)
    base = preset_document(base_name(shown))
    said = () if value is None else remarks(value, reviewed=was_reviewed(shown, standing))
    context: dict[str, Any] = {
        "section": "policies",
        "team": team,
        "version": shown,
        "effect": PolicyEffects.of(team).shown(shown),
        "policy": shown.policy,
        "preset": name in PRESETS,
        "based_on": shown.policy.based_on,
        "places": standing.places(shown.pk),
        "sessions": standing.sessions.get(shown.pk, 0),
        "sections": [] if value is None else sections(value, SettingTexts(base, said)),
        "broken": "" if value is not None else _broken(shown),
        "warnings": sum(one.severity == "warning" for one in said),
        "remarks": said,
        "yaml": text,
        "simulations": shown.simulations.order_by("-created")[:SIMULATIONS],
        "reviewed": agreement.of_version(shown),
        "suggested": suggested(shown),
        "newest": shown.policy.versions.order_by("-number").values_list("number", flat=True)[0],
        "kept": "kept" in request.GET,
        "may_write": allowed(request, team, "write"),
    }
    return render(request, "policies/version.html", context)


def _broken(shown: PolicyVersion) -> str:
    try:
        from_dict(shown.document)
    except InvalidPolicy as error:
        return str(error)
    return ""


def yaml_file(shown: PolicyVersion, text: str) -> HttpResponse:
    """A version as a YAML download."""
    name = f"{shown.policy.name}-{shown.number}.yaml"
    return HttpResponse(
        text,
        content_type=f"{YAML}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


PAGES = (
    Page(route="policies/<str:name>/", query=("cursor",), view=policy, name="policy"),
    Page(
        route="policies/<str:name>/<int:number>/",
        query=("as", "kept"),
        view=version,
        name="policy_version",
    ),
)
