"""Policies: list, read, and save versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Path, Query, Router

from compaction.advice.lint import remarks
from compaction.policies.origin import changes, origins
from compaction.policies.policy import InvalidPolicy
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import UnreadablePolicy, read
from sessions.access import actor_of, team_of, team_to
from sessions.actions.policies.policies import (
    UnknownPolicy,
    in_use,
    named_policy,
    named_version,
    newest_number,
    preset_version,
    save_version,
)
from sessions.api.policies import shapes
from sessions.api.policies import shapes as policy_shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import BIGGEST
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.policies.policy_documents import base_name, preset_document, readable, yaml_of
from sessions.models.policies.policy_use import PolicyUse, was_reviewed
from sessions.models.policies.suggested import suggested

YAML = "application/yaml"

router = Router(tags=["Policies"])

_Name = Path(..., max_length=80, description="of a policy, without a version")


@router.get("policies", response=policy_shapes.PolicyList, url_name="policies")
def policies(request: HttpRequest) -> HttpResponse:
    """List the policies available to the team's sessions: presets, then its own."""
    team = team_of(request)
    for name in PRESETS:
        preset_version(team, name)
    use = in_use(team)
    rows = Policy.objects.filter(team=team).prefetch_related("versions").order_by("name")
    listed = sorted(rows, key=lambda row: row.name not in PRESETS)
    return json_answer({"policies": [_describe_policy(row, use) for row in listed]})


def _describe_policy(row: Policy, use: PolicyUse) -> dict[str, Any]:
    versions = sorted(row.versions.all(), key=lambda one: one.number)
    active = [one.number for one in versions if one.pk == use.active]
    return {
        "name": row.name,
        "preset": row.name in PRESETS,
        "based_on": row.based_on,
        "newest": versions[-1].number if versions else 0,
        "active": active[0] if active else None,
        "sessions": sum(use.sessions.get(one.pk, 0) for one in versions),
        "url": reverse("policy", args=[row.name]),
    }


@router.get("policies/{name}", response=policy_shapes.PolicyOut, url_name="policy")
def policy(request: HttpRequest, name: str = _Name) -> HttpResponse:
    """Get a policy with its versions, newest first, and the changes in each."""
    team = team_of(request)
    try:
        row = named_policy(team, name)
    except UnknownPolicy:
        raise Http404("no such policy") from None
    use = in_use(team)
    rows = row.versions.select_related("author").order_by("number")
    versions = []
    before: PolicyVersion | None = None
    for one in rows:
        versions.append(_listed(one, before, use))
        before = one
    return json_answer({**_describe_policy(row, use), "versions": versions[::-1]})


def _head(one: PolicyVersion) -> dict[str, Any]:
    return {
        "ref": f"{one.policy.name}@{one.number}",
        "number": one.number,
        "note": one.note,
        "author": one.author.username if one.author is not None else None,
        "created": one.created.isoformat(),
        "url": reverse("policy_version", args=[one.policy.name, one.number]),
    }


def _listed(one: PolicyVersion, before: PolicyVersion | None, use: PolicyUse) -> dict[str, Any]:
    found = () if before is None else changes(before.document, one.document)
    return {
        **_head(one),
        "in_use": [place.text for place in use.places(one.pk)],
        "sessions": use.sessions.get(one.pk, 0),
        "changes": [
            {"path": each.path, "name": each.name, "before": each.before, "after": each.after}
            for each in found
        ],
    }


@router.get(
    "policies/{name}/{number}",
    response=policy_shapes.VersionOut,
    url_name="policy_version",
    openapi_extra={"responses": {200: {"content": {YAML: {"schema": {"type": "string"}}}}}},
)
def version(
    request: HttpRequest,
    name: str = _Name,
    number: int = Path(..., ge=1, le=BIGGEST),
    format: Literal["json", "yaml"] = Query("json", description="yaml: only the YAML document"),
) -> HttpResponse:
    """Get a version: every value with its origin, and remarks."""
    team = team_of(request)
    try:
        found = named_version(team, f"{name}@{number}")
    except UnknownPolicy:
        raise Http404("no such version") from None
    if format == "yaml":
        return HttpResponse(
            yaml_of(found),
            content_type=f"{YAML}; charset=utf-8",
            headers={"Cache-Control": "no-store"},
        )
    return json_answer(_describe_version(found, in_use(team)))


def _describe_version(found: PolicyVersion, use: PolicyUse) -> dict[str, Any]:
    value = readable(found)
    said = () if value is None else remarks(value, reviewed=was_reviewed(found, use))
    base = preset_document(base_name(found))
    adapted = suggested(found)
    return {
        **_head(found),
        "based_on": found.policy.based_on,
        "document": found.document,
        "origins": origins(found.document, base),
        "remarks": [{"path": one.path, "text": one.text, "severity": one.severity} for one in said],
        "suggestions": [] if adapted is None else adapted.as_list(),
    }


@router.put(
    "policies/{name}",
    response={200: policy_shapes.VersionOut, 201: policy_shapes.VersionOut},
    url_name="policy_save",
)
@done_once
def save(request: HttpRequest, wanted: shapes.PolicyIn, name: str = _Name) -> HttpResponse:
    """Save a new version of a team's policy.

    Returns 200 with the existing version if one is identical. Existing sessions keep theirs, and
    new ones use the active version.
    """
    team = team_to(request, "write")
    document, based_on, where = _wanted(team, name, wanted)
    newest = newest_number(team, name)
    author = request.user if request.user.is_authenticated else None
    try:
        made = save_version(team, name, document, based_on, wanted.note, author, actor_of(request))
    except InvalidPolicy as error:
        detail = f"{error.field} {error.problem.removesuffix('.')}."
        pointer = pointer_of(error.field, where)
        raise Refusal(422, "Invalid policy", detail, field=pointer) from None
    return json_answer(_describe_version(made, in_use(team)), 201 if made.number > newest else 200)


def _wanted(team: Team, name: str, wanted: shapes.PolicyIn) -> tuple[Mapping[str, Any], str, str]:
    """The document, its base, and its place in the body."""
    if (wanted.document is None) == (wanted.yaml is None):
        raise Refusal(
            422, "Invalid policy", "Send either `document` or `yaml`, not both.", field="/document"
        )
    row = Policy.objects.filter(team=team, name=name).first() if newest_number(team, name) else None
    usual = row.based_on if row is not None else ""
    if wanted.document is not None:
        document = dict(wanted.document)
        given = document.pop("based_on", None)
        stated = given if isinstance(given, str) else None
        where = "/document"
    else:
        try:
            found = read(wanted.yaml or "")
        except UnreadablePolicy as error:
            raise Refusal(422, "Invalid YAML", f"{error}.", field="/yaml") from None
        document, stated, where = found.document, found.based_on or None, "/yaml"
    named = document.pop("name", name)
    if named != name:
        raise Refusal(
            422,
            "Name mismatch",
            f"The URL names the policy {name}. Omit the name in the document, or use the same.",
            field=f"{where}/name" if where == "/document" else where,
        )
    chosen = wanted.based_on if wanted.based_on is not None else stated
    return document, usual if chosen is None else chosen, where


def pointer_of(field: str, where: str) -> str:
    """Convert "steps[2].parameters.age" to a JSON pointer into the body; positions inside YAML are
    not given."""
    if field in ("based_on", "note"):
        return f"/{field}"
    if where == "/yaml" or field == "policy":
        return where
    if field == "name":
        return "path name"
    path = field.replace("~", "~0").replace("/", "~1")
    return f"{where}/{path.replace('[', '/').replace(']', '').replace('.', '/')}"
