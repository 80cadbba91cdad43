"""The tuning lab: a draft policy compared with the active one, simulated as its settings move."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.advice.lint import remarks
from compaction.policies.fields import GROUPS, about, fields
from compaction.policies.origin import origins
from compaction.policies.policy import InvalidPolicy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.prices.prices import UNKNOWN_WINDOW
from sessions.access import team_of, team_to
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.demo.demo_tuning import NOTE, is_of_demo
from sessions.actions.lab import warm
from sessions.actions.lab.choices import MOST, usual_choice
from sessions.actions.lab.simulations import MOST_OTHERS
from sessions.actions.lab.tunings import MOST_SESSIONS, MOST_TRIALS, TRIALS
from sessions.actions.policies.policies import UnknownPolicy, named_version, preset_document
from sessions.api.lab.simulated import simulation_line
from sessions.api.lab.tunings import state_of
from sessions.models import PolicyVersion, Simulation, Team, Tuning
from sessions.models.dashboard.facets import facets
from sessions.models.dashboard.matching import FACETS, FLAGS, matching
from sessions.models.lab.simulated_sums import ASSUMPTIONS
from sessions.models.record.demo_data import listed
from sessions.models.record.sessions import SORT_KEYS
from sessions.views.web.demo_notice import SWITCH, demo_notice
from sessions.views.web.pages import Link, Page

RECENT = 12
"""Simulations listed on the page."""

VERSIONS_SHOWN = 5
"""Newest versions per policy offered as a starting point; URLs accept any."""


@require_GET
def lab(request: HttpRequest) -> HttpResponse:
    """Show the lab; `?draft=name@n` starts from a version, `?simulation=` from a simulation's draft
    and sessions. The page itself reads a selection of sessions from the URL."""
    return lab_page(request)


def lab_page(request: HttpRequest, problem: str = "") -> HttpResponse:
    """Render the lab; `problem` says why a requested search was not started."""
    team = team_of(request)
    earlier = _earlier(team, request.GET.get("simulation", ""))
    active = _active_ref(team)
    draft = request.GET.get("draft") or (str(earlier.draft) if earlier else active)
    notice = demo_notice(request, team, switch=True)
    data, may_write = notice["demo_data"], notice["may_write"]
    demo = notice["demo_asked"] or data is None or data.alone
    keep_totals(team)
    sessions = _sessions(team, demo=demo)
    of_demo = demo and data is not None
    policies = _policies(team, active, demo=of_demo)
    if sessions:
        warm.prepare(team.pk)
    context: dict[str, Any] = {
        **notice,
        "section": "lab",
        "any": bool(sessions),
        "recent": [(one, simulation_line(request, one)) for one in _recent(team, demo=demo)],
        "searches": [(one, state_of(one)) for one in _searches(team, demo=demo)],
        "search": _search(request, draft),
        "search_problem": problem,
        "refs": [one["ref"] for one in policies],
        "props": {
            "may_write": may_write,
            "active": _begun(team, active),
            "draft": _begun(team, draft),
            "policies": policies,
            "sessions": sessions,
            "facets": _facets(team, demo=demo),
            "flags": [[name, f"{sign} {label}"] for name, (sign, label, _) in FLAGS.items()],
            "choice": earlier.chosen if earlier else usual_choice(team),
            "groups": GROUPS,
            "assumptions": ASSUMPTIONS,
            "most_sessions": MOST,
            "most_others": MOST_OTHERS,
            **addresses(),
        },
    }
    return render(request, "lab/lab.html", context, status=422 if problem else 200)


def addresses() -> dict[str, str]:
    """URLs the page uses."""
    return {
        "lab_url": reverse("lab"),
        "draft_url": reverse("lab_draft"),
        "figures_url": reverse("lab_figures"),
        "simulations_url": reverse("api:simulations"),
        "simulation_url": with_id("simulation"),
        "replay_url": with_id("replay"),
        "propose_url": reverse("propose", args=["-name-", 0]).replace(
            "-name-/0", "{name}/{number}"
        ),
        "policy_edit_url": page_url("policy_edit", "-name-").replace("-name-", "{name}"),
    }


def page_url(name: str, *args: Any) -> str:
    """The URL of a page, or "" if this release does not have it."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def with_id(name: str) -> str:
    """A URL that takes one id, with {id} as the placeholder."""
    no_id = "00000000-0000-0000-0000-000000000000"
    return reverse(name, args=[no_id]).replace(no_id, "{id}")


def _earlier(team: Team, name: str) -> Simulation | None:
    try:
        known = UUID(name)
    except ValueError:
        return None
    rows = Simulation.objects.for_team(team).select_related("draft__policy")
    return rows.filter(pk=known).first()


def _search(request: HttpRequest, draft: str) -> dict[str, Any]:
    """Values of the search form: as submitted, or defaults."""
    usual = {"base": draft, "objective": "cheap", "n": "40", "min_steps": "30", "trials": TRIALS}
    return {name: request.POST.get(name, value) for name, value in usual.items()} | {
        "most": MOST_SESSIONS,
        "most_trials": MOST_TRIALS,
    }


def _searches(team: Team, *, demo: bool) -> list[Tuning]:
    rows = Tuning.objects.for_team(team).select_related("base__policy", "job", "author")
    rows = rows if demo else rows.exclude(base__note=NOTE)
    return list(rows.order_by("-created", "-pk")[:RECENT])


def _recent(team: Team, *, demo: bool) -> list[Simulation]:
    rows = Simulation.objects.for_team(team).order_by("-created")
    rows = rows if demo else rows.exclude(note=NOTE)
    named = rows.select_related("job", "author", "draft__policy", "active__policy")
    return list(named[:RECENT])


def _active_ref(team: Team) -> str:
    return str(team.active) if team.active_id else settings.DEFAULT_POLICY


def _begun(team: Team, ref: str) -> dict[str, Any]:
    """A version to start from: {ref, name, based_on} and what `_describe_draft` adds.

    Raises Http404.
    """
    name, _, number = ref.partition("@")
    if name in PRESETS and not number:
        found = {"ref": name, "name": name, "preset": True, "based_on": name}
        return found | _describe_draft(to_dict(PRESETS[name]), name)
    try:
        version = named_version(team, ref)
    except UnknownPolicy:
        raise Http404("no such policy") from None
    policy = version.policy
    based_on = name if policy.preset else policy.based_on
    found = {"ref": ref, "name": name, "preset": policy.preset, "based_on": based_on}
    return found | _describe_draft(version.document, based_on)


def _describe_draft(
    document: Mapping[str, Any], based_on: str, window: int = UNKNOWN_WINDOW
) -> Any:
    """A document with what the form needs: fields, origins, remarks; or the problem that keeps it
    from running."""
    try:
        policy = from_dict(document)
    except InvalidPolicy as error:
        return {"problem": {"path": error.field, "text": str(error).partition(": ")[2]}}
    whole = to_dict(policy)
    return {
        "document": whole,
        "fields": [asdict(one) for one in fields(policy)],
        "origins": origins(whole, preset_document(based_on)),
        "remarks": [asdict(one) for one in remarks(policy, window=window)],
        "about": {step.strategy: about(step.strategy) for step in policy.steps}
        | ({"recite": about("recite")} if policy.recite else {}),
        "problem": None,
    }


@require_POST
def draft(request: HttpRequest) -> HttpResponse:
    """Describe a draft: {"ref"} as stored, or {"document", "based_on", "window"} as edited. Stores
    nothing."""
    team = team_to(request, "read")
    try:
        asked = json.loads(request.body)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        return JsonResponse({"title": "Invalid draft", "detail": "Send a JSON object."}, status=422)
    if isinstance(asked.get("ref"), str):
        return JsonResponse(_begun(team, asked["ref"]))
    window = asked.get("window")
    known = isinstance(window, int) and 0 < window < 1_000_000_000
    based_on = str(asked.get("based_on") or "")
    document = asked.get("document")
    return JsonResponse(
        _describe_draft(
            document if isinstance(document, dict) else {},
            based_on,
            window if known and isinstance(window, int) else UNKNOWN_WINDOW,
        )
    )


def _policies(team: Team, active: str, *, demo: bool) -> list[dict[str, Any]]:
    """Versions to start a draft from: the team's own policies first, then presets. The demo's
    policy is among them only if its sessions are, or if it is active."""
    versions = PolicyVersion.objects.filter(policy__team=team).select_related("policy")
    by_policy: dict[int, list[PolicyVersion]] = {}
    for version in versions.defer("document").order_by("policy__name", "-number"):
        by_policy.setdefault(version.policy_id, []).append(version)
    own = [
        {"ref": str(one), "name": one.policy.name, "note": one.note, "active": str(one) == active}
        for found in by_policy.values()
        for one in found[:VERSIONS_SHOWN]
        if one.policy.name not in PRESETS
        and (demo or str(one) == active or not is_of_demo(one.policy))
    ]
    presets = [
        {"ref": name, "name": name, "note": "preset", "active": name == active.partition("@")[0]}
        for name in PRESETS
    ]
    return own + presets


def _sessions(team: Team, *, demo: bool) -> list[dict[str, Any]]:
    """Sessions to choose by hand: those of the demo last, otherwise newest first."""
    rows = matching(team).filter(listed(team.pk, demo=demo), step_count__gt=0)
    # The order of an index; those of the demo are last in it.
    rows = rows.order_by(SORT_KEYS["newest"].desc(), "-pk").only(*_SHOWN)
    return [
        {
            "id": str(one.pk),
            "title": str(one),
            "agent": one.agent,
            "model": one.model,
            "steps": one.step_count,
            "peak": one.peak_tokens,
            "cost": one.cost_microusd,
            "demo": one.demo,
        }
        for one in rows[:MOST]
    ]


_SHOWN = (
    *("title", "external_id", "agent", "model", "step_count", "peak_tokens", "cost_microusd"),
    "demo",
)
"""The columns of a session to choose."""


def _facets(team: Team, *, demo: bool) -> dict[str, list[str]]:
    counted = facets(team, demo=demo)
    return {name: sorted(value for value, *_ in counted.get(name, [])) for name in FACETS}


_CHOICE = ("by", "q", "agent", "model", "source", "flags", "limit", "n", "seed", "min_steps", "ids")
"""The choice of sessions that the page's script keeps in its address (`choice.ts`)."""

PAGES = (
    Page(
        route="lab/",
        query=("simulation", "draft", *_CHOICE, SWITCH),
        view=lab,
        name="lab",
        link=Link(60, "Lab", "lab", "g t", "lab", "Improve"),
        about="simulations, compare policies, auto-tune, frontier",
    ),
    Page(route="lab/draft/", view=draft, name="lab_draft", needs={"POST": "read"}),
)
