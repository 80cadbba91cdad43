"""Policies: what a team has, what each version says, and saving the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Path, Query, Router

from compaction.policies.lint import remarks
from compaction.policies.origin import changes, origins
from compaction.policies.policy import InvalidPolicy
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import Unreadable, read
from sessions.actions.policies import (
    UnknownPolicy,
    in_use,
    named_policy,
    named_version,
    newest_number,
    preset_version,
    save_version,
)
from sessions.api import incoming, policy_shapes
from sessions.api.access import actor_of, team_of, team_to
from sessions.api.answers import done_once, told
from sessions.api.problems import Refusal
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.policy_documents import base_name, preset_document, readable, yaml_of
from sessions.models.policy_use import Use, was_reviewed
from sessions.models.suggested import suggested

YAML = "application/yaml"

router = Router(tags=["Policies"])

_Name = Path(..., max_length=80, description="of a policy, without a version")


@router.get("policies", response=policy_shapes.PolicyList, url_name="policies")
def policies(request: HttpRequest) -> HttpResponse:
    """Lists the policies that sessions of the team may name: presets, then the team's own."""
    team = team_of(request)
    for name in PRESETS:
        preset_version(team, name)
    use = in_use(team)
    rows = Policy.objects.filter(team=team).prefetch_related("versions").order_by("name")
    listed = sorted(rows, key=lambda row: row.name not in PRESETS)
    return told({"policies": [_policy_told(row, use) for row in listed]})


def _policy_told(row: Policy, use: Use) -> dict[str, Any]:
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


@router.get("policies/{name}", response=policy_shapes.PolicyTold, url_name="policy")
def policy(request: HttpRequest, name: str = _Name) -> HttpResponse:
    """Tells a policy with its versions, newest first, and what each changed."""
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
    return told({**_policy_told(row, use), "versions": versions[::-1]})


def _head(one: PolicyVersion) -> dict[str, Any]:
    return {
        "ref": f"{one.policy.name}@{one.number}",
        "number": one.number,
        "note": one.note,
        "author": one.author.username if one.author is not None else None,
        "created": one.created.isoformat(),
        "url": reverse("policy_version", args=[one.policy.name, one.number]),
    }


def _listed(one: PolicyVersion, before: PolicyVersion | None, use: Use) -> dict[str, Any]:
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
    "policies/{name}/{number}", response=policy_shapes.VersionTold, url_name="policy_version"
)
def version(
    request: HttpRequest,
    name: str = _Name,
    number: int = Path(..., ge=1, le=incoming.BIGGEST),
    format: Literal["json", "yaml"] = Query("json", description="yaml: the readable form alone"),
) -> HttpResponse:
    """Tells every value of a version, where each comes from, and what is remarked of it."""
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
    return told(_version_told(found, in_use(team)))


def _version_told(found: PolicyVersion, use: Use) -> dict[str, Any]:
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
        "suggestions": [] if adapted is None else adapted.told(),
    }


@router.put(
    "policies/{name}",
    response={200: policy_shapes.VersionTold, 201: policy_shapes.VersionTold},
    url_name="policy_save",
)
@done_once
def save(request: HttpRequest, wanted: incoming.PolicyWanted, name: str = _Name) -> HttpResponse:
    """Saves what a policy of the team says from now on: the next version, or the first.

    200 with the version that says exactly this, where there is one. Sessions keep theirs, and new
    ones begin with what is active.
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
        raise Refusal(422, "Not a policy", detail, field=pointer) from None
    return told(_version_told(made, in_use(team)), 201 if made.number > newest else 200)


def _wanted(
    team: Team, name: str, wanted: incoming.PolicyWanted
) -> tuple[Mapping[str, Any], str, str]:
    """The document, its base, and where in the body the document is."""
    if (wanted.document is None) == (wanted.yaml is None):
        raise Refusal(422, "Not a policy", "Give either `document` or `yaml`.", field="/document")
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
        except Unreadable as error:
            raise Refusal(422, "Not readable", f"{error}.", field="/yaml") from None
        document, stated, where = found.document, found.based_on or None, "/yaml"
    named = document.pop("name", name)
    if named != name:
        raise Refusal(
            422,
            "Another name",
            f"The address says {name}. Leave the name out, or say the same.",
            field=f"{where}/name" if where == "/document" else where,
        )
    chosen = wanted.based_on if wanted.based_on is not None else stated
    return document, usual if chosen is None else chosen, where


def pointer_of(field: str, where: str) -> str:
    """ "steps[2].parameters.age" as a JSON pointer into the body; YAML has no places of its own."""
    if field in ("based_on", "note"):
        return f"/{field}"
    if where == "/yaml" or field == "policy":
        return where
    if field == "name":
        return "path name"
    path = field.replace("~", "~0").replace("/", "~1")
    return f"{where}/{path.replace('[', '/').replace(']', '').replace('.', '/')}"
