"""The policy editor: a form, YAML, and remarks before saving."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from compaction.advice.lint import remarks
from compaction.policies.fields import about, fields
from compaction.policies.origin import keys_of
from compaction.policies.policy import STEPS, InvalidPolicy, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.resolve import paths_of, with_value
from compaction.policies.yaml import LONGEST, written
from compaction.strategies import STRATEGIES
from sessions.access import actor_of, team_to
from sessions.actions.lab.setting_effects import setting_effects
from sessions.actions.policies.policies import (
    NOTE_LENGTH,
    UnknownPolicy,
    checked,
    named_version,
    newest_number,
    save_version,
)
from sessions.models import Policy, PolicyVersion, Team
from sessions.models.policies.policy_documents import base_name, preset_document, readable
from sessions.models.policies.suggested import suggested
from sessions.views.policies.policies import found
from sessions.views.policies.policy_differences import differences_of
from sessions.views.policies.policy_drafts import (
    Draft,
    change,
    draft_of,
    read_value,
    take_over,
    typed,
)
from sessions.views.policies.policy_values import SettingTexts, groups, sections
from sessions.views.web.pages import Page

USUAL = "balanced"
"""Default base preset of a new policy."""

SET = ("set", "to")
"""Query parameters of a proposed value: a setting, as in `resolve`, and its value."""

TAKEN = "already exists; edit that policy or choose another name"


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Create a policy; ?based_on= names a preset and ?from= a version to start from, ?suggested
    applies the suggestions of that version's compactions."""
    team = team_to(request, "write")
    if request.method == "POST":
        return _answered(request, team, None)
    return _shown(request, team, None, _proposed(request, _beginning(request, team)))


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


def _proposed(request: HttpRequest, draft: Draft) -> Draft:
    """Put the value of `?set=setting&to=value` into a draft, and show that setting."""
    key, text = request.GET.get("set", ""), request.GET.get("to", "")
    paths = paths_of(draft.document, key) if key else []
    for one in fields(draft.policy()[0]) if paths else ():
        if one.path in paths:
            draft.focus = one.path
            value = read_value(one, text) if text else one.value
            draft.document = with_value(draft.document, one.path, value)
    return draft


def _adapted(
    request: HttpRequest, version: PolicyVersion, document: dict[str, Any]
) -> dict[str, Any]:
    """The document to start from, with suggestions applied if requested."""
    found = suggested(version) if "suggested" in request.GET else None
    return document if found is None else found.taken_over(document)


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Edit the next version of a policy; ?from=2 starts from an earlier one, ?suggested applies its
    suggestions. Presets redirect to a new policy."""
    team = team_to(request, "write")
    policy = found(team, name)
    if name in PRESETS:
        asked = {"based_on": name} | {one: request.GET[one] for one in SET if one in request.GET}
        return redirect(f"{reverse('policy_new')}?{urlencode(asked)}")
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
    return _shown(request, team, policy, _proposed(request, draft))


def _answered(request: HttpRequest, team: Team, policy: Policy | None) -> HttpResponse:
    """Handle a button of the form: save, or change the draft and show the form again."""
    draft = typed(request.POST)
    if policy is not None:
        draft.name = policy.name
    act = request.POST.get("do", "check")
    pasted = _pasted(request)
    if act != "read" and _waits(request, draft, pasted):
        draft.yaml = pasted  # keep it in the field until it is applied or cleared
    if act == "save":
        return _saved(request, team, policy, draft)
    if act == "read":
        take_over(draft, pasted, rename=policy is None)
    elif act == "recite":
        draft.document["recite"] = {} if draft.document["recite"] is None else None
    else:
        change(draft, act, request.POST.get("strategy", ""))
    if policy is None and draft.name:
        _check_name(team, draft)
    return _shown(request, team, policy, draft)


def _check_name(team: Team, draft: Draft) -> None:
    """Validate the name of a new policy."""
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
        # Read one byte too many, so that long files are refused rather than truncated.
        return file.read(LONGEST + 1).decode("utf-8", "replace").removeprefix("\ufeff")
    return request.POST.get("yaml", "").replace("\r\n", "\n")


def _waits(request: HttpRequest, draft: Draft, pasted: str) -> bool:
    """Whether an uploaded file or pasted YAML differs from the form."""
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
    """A digest that identifies YAML generated by the page when it is submitted back."""
    return sha256(yaml.strip().encode()).hexdigest()


def _saved(request: HttpRequest, team: Team, policy: Policy | None, draft: Draft) -> HttpResponse:
    draft.policy()  # collect every invalid value, not just the first
    if draft.yaml:
        draft.problems["yaml"] = (
            "This YAML is not in the form yet, so nothing was saved. Apply it to the form, "
            "or clear this field."
        )
    newest = newest_number(team, draft.name)
    if policy is None and newest:
        draft.problems["name"] = TAKEN
    elif policy is not None and newest != draft.seen:
        draft.problems["seen"] = (
            f"{draft.name}@{newest} was saved while you were editing. Review its changes; "
            "saving again creates the version after it."
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
    document = to_dict(value)
    base = preset_document(draft.based_on)
    yaml = written(document, draft.based_on, base)
    said = remarks(value)
    differences = differences_of(team, policy, draft, document)
    changed = differences[0].changes
    keys, effects = keys_of(document), setting_effects(team, document)
    texts = SettingTexts(
        base,
        said,
        draft.problems,
        given,
        {one.path: one.before_in_words for one in changed if one.field is not None},
        {path: effects[key] for path, key in keys.items() if key in effects},
    )
    shown = sections(value, texts)
    values = {row.field.path for one in shown for row in one.rows}
    context = {
        "section": "policies",
        "team": team,
        "policy": policy,
        "draft": draft,
        "sections": shown,
        "groups": groups(shown, draft.focus),
        "differences": differences,
        "change_count": len(changed),
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
        "strategies": [(name, one.title, one.does) for name, one in STRATEGIES.items()],
        "full": len(value.steps) >= STEPS,
        "presets": list(PRESETS),
        "note_length": NOTE_LENGTH,
        "yaml": draft.yaml or yaml,
        "yaml_shown": _mark(yaml),
    }
    return render(request, "policies/form.html", context, status=status)


PAGES = (
    Page(
        route="policies/new/",
        query=("from", "based_on", "suggested", *SET),
        view=new,
        name="policy_new",
        needs={"GET": "write", "POST": "write"},
    ),
    Page(
        route="policies/<str:name>/edit/",
        query=("from", "suggested", *SET),
        view=edit,
        name="policy_edit",
        needs={"GET": "write", "POST": "write"},
    ),
)
