"""Writing a policy: a form of its values, YAML beside it, and remarks before anything is saved."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from compaction.policies.fields import about
from compaction.policies.lint import remarks
from compaction.policies.policy import STEPS, InvalidPolicy, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.yaml import LONGEST, written
from compaction.strategies import STRATEGIES
from sessions.actions.policies import (
    NOTE_LENGTH,
    UnknownPolicy,
    checked,
    named_version,
    newest_number,
    save_version,
)
from sessions.api.access import actor_of, team_to
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.policy_documents import base_name, preset_document, readable
from sessions.models.suggested import suggested
from sessions.views.policies import found
from sessions.views.policy_drafts import Draft, change, draft_of, take_over, typed
from sessions.views.policy_values import Told, sections

USUAL = "balanced"
"""The preset that a new policy begins with where none is named."""

TAKEN = "there is a policy of that name; change it there, or take another"


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """A policy that is not there yet; ?based_on= names a preset, ?from= a version to begin with,
    ?suggested takes over what that one's compactions suggest."""
    team = team_to(request, "write")
    if request.method == "POST":
        return _answered(request, team, None)
    return _shown(request, team, None, _beginning(request, team))


def _beginning(request: HttpRequest, team: Team) -> Draft:
    ref = request.GET.get("from") or request.GET.get("based_on") or USUAL
    try:
        version = named_version(team, ref)
    except UnknownPolicy:
        raise Http404("no such policy") from None
    value = readable(version)
    if value is None:
        raise Http404("no policy that runs")
    return draft_of(_adapted(request, version, to_dict(value)), "", base_name(version))


def _adapted(
    request: HttpRequest, version: PolicyVersion, document: dict[str, Any]
) -> dict[str, Any]:
    """The document to begin with: where it is wished, with what its compactions suggest."""
    found = suggested(version) if "suggested" in request.GET else None
    return document if found is None else found.taken_over(document)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The next version of a policy; ?from=2 begins with an earlier one, ?suggested with what its
    compactions suggest. Presets stay."""
    team = team_to(request, "write")
    policy = found(team, name)
    if name in PRESETS:
        return redirect(f"{reverse('policy_new')}?based_on={name}")
    if request.method == "POST":
        return _answered(request, team, policy)
    newest = newest_number(team, name)
    number = request.GET.get("from") or str(newest)
    try:
        version = named_version(team, f"{name}@{number}")
    except UnknownPolicy:
        raise Http404("no such version") from None
    value = readable(version)
    document = {} if value is None else _adapted(request, version, to_dict(value))
    draft = draft_of(document or {"steps": []}, name, policy.based_on, newest)
    return _shown(request, team, policy, draft)


def _answered(request: HttpRequest, team: Team, policy: Policy | None) -> HttpResponse:
    """What a button of the form does: it saves, or shows the form as it is then."""
    draft = typed(request.POST)
    if policy is not None:
        draft.name = policy.name
    act = request.POST.get("do", "check")
    pasted = _pasted(request)
    if act != "read" and _waits(request, draft, pasted):
        draft.yaml = pasted  # it stays where it stands until somebody takes it over or empties it
    if act == "save":
        return _saved(request, team, policy, draft)
    if act == "read":
        take_over(draft, pasted, rename=policy is None)
    elif act == "recite":
        draft.document["recite"] = {} if draft.document["recite"] is None else None
    else:
        change(draft, act, request.POST.get("strategy", ""))
    if policy is None and draft.name:
        _name_told(team, draft)
    return _shown(request, team, policy, draft)


def _name_told(team: Team, draft: Draft) -> None:
    """Say of the name of a new policy why it may not be, if it may not."""
    try:
        checked(draft.name, {}, "", "")
    except InvalidPolicy as error:
        if error.field == "name":
            draft.problems["name"] = error.problem
    if newest_number(team, draft.name):
        draft.problems["name"] = TAKEN


def _pasted(request: HttpRequest) -> str:
    file = request.FILES.get("file")
    if isinstance(file, UploadedFile) and file.size:
        # One byte more than is read, so that what is too long is refused and not cut.
        return file.read(LONGEST + 1).decode("utf-8", "replace").removeprefix("\ufeff")
    return request.POST.get("yaml", "").replace("\r\n", "\n")


def _waits(request: HttpRequest, draft: Draft, pasted: str) -> bool:
    """Whether a file or pasted YAML says what the form does not say yet."""
    if not pasted.strip() or _mark(pasted) == request.POST.get("yaml_shown"):
        return False
    ahead = replace(draft, problems={})
    take_over(ahead, pasted, rename=False)
    mine = replace(draft, problems={})
    same = (ahead.based_on, to_dict(ahead.policy()[0])) == (
        mine.based_on,
        to_dict(mine.policy()[0]),
    )
    return bool(ahead.yaml or mine.problems) or not same


def _mark(yaml: str) -> str:
    """By which the YAML that a page showed is known again when it comes back."""
    return sha256(yaml.strip().encode()).hexdigest()


def _saved(request: HttpRequest, team: Team, policy: Policy | None, draft: Draft) -> HttpResponse:
    draft.policy()  # every value that may not be, and not only the first
    if draft.yaml:
        draft.problems["yaml"] = (
            "This is not in the form yet, so nothing is saved: take it over into the form, or "
            "empty this field."
        )
    newest = newest_number(team, draft.name)
    if policy is None and newest:
        draft.problems["name"] = TAKEN
    elif policy is not None and newest != draft.seen:
        draft.problems["seen"] = (
            f"{draft.name}@{newest} was saved while you wrote. Look at what it changed; saving "
            f"again makes yours the version after it."
        )
        draft.seen = newest
    if not draft.problems:
        author = request.user if request.user.is_authenticated else None
        try:
            made = save_version(
                team, draft.name, draft.document, draft.based_on, draft.note, author,
                actor_of(request),
            )  # fmt: skip
        except InvalidPolicy as error:
            draft.problems[error.field] = error.problem
        else:
            address = reverse("policy_version", args=[made.policy.name, made.number])
            return redirect(address if made.number > newest else f"{address}?kept")
    return _shown(request, team, policy, draft, status=422)


def _shown(
    request: HttpRequest, team: Team, policy: Policy | None, draft: Draft, status: int = 200
) -> HttpResponse:
    value, given = draft.policy()
    base = preset_document(draft.based_on)
    yaml = written(to_dict(value), draft.based_on, base)
    said = remarks(value)
    shown = sections(value, Told(base, said, draft.problems, given))
    values = {row.field.path for one in shown for row in one.rows}
    context = {
        "section": "policies",
        "team": team,
        "policy": policy,
        "draft": draft,
        "sections": shown,
        "recites": value.recite is not None,
        "about_recite": about("recite"),
        "failed": status != 200,
        "problem_count": len(draft.problems.keys() - {"seen"}),
        "other_problems": {
            path: text
            for path, text in draft.problems.items()
            if path not in values and path not in ("name", "note", "yaml", "seen")
        },
        "warnings": sum(one.severity == "warning" for one in said),
        "remarks": said,
        "strategies": [(name, about(name)) for name in STRATEGIES],
        "full": len(value.steps) >= STEPS,
        "presets": list(PRESETS),
        "note_length": NOTE_LENGTH,
        "yaml": draft.yaml or yaml,
        "yaml_shown": _mark(yaml),
    }
    return render(request, "policies/form.html", context, status=status)
