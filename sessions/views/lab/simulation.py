"""A simulation: results as they arrive, and all drafts tried on the same sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.policies.presets import PRESETS
from sessions.access import actor_of, allowed, team_to, teams_of
from sessions.actions.demo.demo_tuning import is_of_demo
from sessions.actions.lab import simulations
from sessions.actions.lab.choices import NoChoice, usual_choice
from sessions.actions.policies.policies import UnknownPolicy, active_version, preset_version
from sessions.actions.policies.policy_effects import effects_of
from sessions.api.lab.simulated import simulation_body, version_of
from sessions.models import PolicyVersion, Session, Simulation, SimulationResult, Team
from sessions.models.lab.charged_sums import charged_cost
from sessions.models.lab.simulated_sums import sums
from sessions.models.policies.policy_documents import readable
from sessions.models.record.demo_data import has_real
from sessions.views.lab.lab import addresses, page_url, with_id
from sessions.views.web.pages import Page

OF_A_SESSION = ("tokens_sent", "in_context", "lost", "needs")
"""Figures shown per session."""


def _simulation(request: HttpRequest, simulation_id: UUID) -> Simulation:
    rows = Simulation.objects.filter(team__in=teams_of(request))
    named = rows.select_related("team", "job", "author", "draft__policy", "active__policy")
    found = named.filter(pk=simulation_id).first()
    if found is None:
        raise Http404("no such simulation")
    return found


@require_GET
def simulation(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Show a simulation at its permanent URL; `?of=name@3` sets one of its versions against what
    was recorded."""
    found = _simulation(request, simulation_id)
    of = version_of(found, request.GET.get("of", ""))
    draft = of or found.draft
    asked = f"?{urlencode({'of': str(of)})}" if of else ""
    body = simulation_body(request, found, of)
    context = {
        "section": "lab",
        "team": found.team,
        "simulation": found,
        "draft": draft,
        "others": len(body["versions"]) - 1,
        "against": body["against"],
        "props": {
            **addresses(),
            "may_write": allowed(request, found.team, "write"),
            "body": body,
            "beside": beside(found, draft),
            "beside_url": reverse("simulation_beside", args=[found.pk]) + asked,
            "body_url": reverse("api:simulation", args=[found.pk]) + asked,
            "simulate_url": reverse("api:simulate", args=["-id-"]).replace("-id-", "{id}"),
            "job_url": with_id("api:job"),
            "cancel_url": reverse("api:simulation_cancel", args=[found.pk]),
            "again_url": f"{reverse('lab')}?{urlencode({'simulation': found.pk, 'draft': draft})}",
            "propose_url": _propose(found, draft),
            "policy_url": page_url("policy_version", draft.policy.name, draft.number),
        },
    }
    return render(request, "lab/simulation.html", context)


def _propose(simulation: Simulation, draft: PolicyVersion) -> str:
    address = page_url("propose", draft.policy.name, draft.number)
    return f"{address}?simulation={simulation.pk}" if address else ""


MOST_OWN = 50
"""Own policies looked at, the newest first."""


@require_POST
def simulate_newest(request: HttpRequest) -> HttpResponse:
    """Simulate policies on the team's newest sessions, or the newest with `flags`, as a job; the
    list of policies follows it."""
    team = team_to(request, "write")
    try:
        choice = usual_choice(team) | {"flags": request.POST.getlist("flags")}
        simulations.ask(
            *(team, choice, active_version(team)),
            *(_to_simulate(team), "", actor_of(request)),
        )
    except (NoChoice, UnknownPolicy) as error:
        messages.error(request, str(error))
    return redirect("policies")


def _to_simulate(team: Team) -> list[PolicyVersion]:
    """Presets and the newest version of each of the team's newest policies, as many as one
    simulation takes beside the active one: those first whose effect is unknown. The demo's policy
    is for its own sessions."""
    own = PolicyVersion.objects.filter(policy__team=team).exclude(policy__name__in=PRESETS)
    last = own.filter(policy=OuterRef("policy")).order_by("-number").values("pk")[:1]
    newest = own.filter(pk=Subquery(last)).order_by("-pk").select_related("policy")
    shown = has_real(team.pk)
    versions = [
        one
        for one in newest[:MOST_OWN]
        if readable(one) is not None and not (shown and is_of_demo(one.policy))
    ]
    versions += [preset_version(team, name) for name in PRESETS]
    known, active = effects_of(team).of, active_version(team)
    left = [one for one in versions if one != active]
    return sorted(left, key=lambda one: one.pk in known)[: simulations.MOST_OTHERS]


@require_GET
def more(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Return the page's additional data while results arrive."""
    found = _simulation(request, simulation_id)
    draft = version_of(found, request.GET.get("of", "")) or found.draft
    return JsonResponse(beside(found, draft))


def beside(simulation: Simulation, draft: PolicyVersion) -> dict[str, Any]:
    """Results per session under a draft, and all versions tried on the same sessions.

    {"sessions": [{id, title, steps, problem, draft, active, recorded}], "tried": [{ref, role,
    cost, in_context, url}]}; the three are figures, or null while missing. `tried` are sums over
    all sessions, for versions with results for each of them. Costs include reading back.
    """
    rows = list(simulation.results.order_by("pk"))
    found = {(row.session_id, row.version_id): row for row in rows}
    names = Session.objects.filter(pk__in={row.session_id for row in rows})
    titles = {one.pk: str(one) for one in names.only("title", "external_id")}
    versions = [
        ("draft", draft.pk),
        ("active", simulation.active_id),
        ("recorded", None),
    ]
    lines = []
    for pk, title in titles.items():
        results = {role: found.get((pk, version)) for role, version in versions}
        line: dict[str, Any] = {"id": str(pk), "title": title}
        line["problem"] = next((one.problem for one in results.values() if one), "")
        line["steps"] = next((one.figures.get("steps") for one in results.values() if one), None)
        line |= {role: _figures(one) for role, one in results.items()}
        lines.append(line)
    order = {name: place for place, name in enumerate(simulation.sessions)}
    lines.sort(key=lambda line: order.get(line["id"], len(order)))
    return {"sessions": lines, "tried": _tried(simulation, draft)}


def _figures(result: SimulationResult | None) -> dict[str, Any] | None:
    if result is None or not result.figures:
        return None
    figures = {key: result.figures.get(key) for key in OF_A_SESSION}
    return figures | {"charged_microusd": charged_cost(result.figures)}


def _tried(simulation: Simulation, draft: PolicyVersion) -> list[dict[str, Any]]:
    """Versions of this simulation, and of the draft's policy if tried on the same sessions, with
    cost and recall over all of them."""
    own = set(simulation.versions.values_list("pk", flat=True))
    wanted = own | set(
        PolicyVersion.objects.filter(policy=draft.policy_id).values_list("pk", flat=True)
    )
    rows = SimulationResult.objects.filter(
        simulation__team=simulation.team_id,
        session__in=simulation.sessions,
        version__in=wanted,
        problem="",
    ).order_by("pk")
    newest: dict[int, dict[UUID, dict[str, Any]]] = {}
    where: dict[int, UUID] = {}
    for row in rows.values_list("version", "session", "figures", "simulation"):
        newest.setdefault(row[0], {})[row[1]] = row[2]
        where[row[0]] = row[3]
    whole = {pk: of for pk, of in newest.items() if len(of) == len(simulation.sessions)}
    versions = PolicyVersion.objects.select_related("policy").defer("document")
    roles = dict.fromkeys(own, "other") | {simulation.active_id: "active"}
    roles |= {draft.pk: "draft"}
    points = [
        _point(
            version,
            roles.get(version.pk, "tried"),
            whole[version.pk].values(),
            where[version.pk],
        )
        for version in versions.filter(pk__in=whole).order_by("policy__name", "number")
    ]
    return [point for point in points if point["cost"] is not None]


def _point(
    version: PolicyVersion, role: str, figures: Iterable[dict[str, Any]], where: UUID
) -> dict[str, Any]:
    added = sums(list(figures))
    return {
        "ref": str(version),
        "role": role,
        "cost": added["charged_microusd"],
        "in_context": added["in_context"],
        "lost": added["lost"],
        "url": reverse("simulation", args=[where]) if role == "tried" else None,
    }


PAGES = (
    Page(
        route="lab/newest/",
        view=simulate_newest,
        name="simulate_newest",
        needs={"POST": "write"},
    ),
    Page(route="lab/<uuid:simulation_id>/", query=("of",), view=simulation, name="simulation"),
    Page(
        route="lab/<uuid:simulation_id>/beside/",
        query=("of",),
        view=more,
        name="simulation_beside",
    ),
)
