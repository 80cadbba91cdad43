"""Rollouts: running, proposed and past ones, and actions on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from compaction.policies.origin import changes
from sessions.access import actor_of, allowed, require, team_of, teams_of
from sessions.actions.accounts.audit import Actor
from sessions.actions.policies import rollouts as actions
from sessions.actions.policies.bounds import BOUNDS, Bound
from sessions.actions.policies.guardrail_findings import Findings, LimitState, missing
from sessions.actions.policies.guardrails import check, findings_of
from sessions.actions.policies.policies import active_version
from sessions.actions.policies.rollout_rules import Act
from sessions.actions.policies.rollouts import STAGES, CannotRollOut, MayNot
from sessions.figures import money, percent
from sessions.models import AuditEntry, PolicyVersion, Rollout, Team
from sessions.models.policies.rollouts import rollout_of_teams, topic_versions
from sessions.views.policies.rollout_buttons import buttons
from sessions.views.policies.rollout_evidence import evidence, remarks_of
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page

State = Rollout.State

_OPEN = (State.PROPOSED, *Rollout.UNDER_WAY)

HISTORY = 200
"""Most audit entries shown for a rollout."""


@dataclass(frozen=True, slots=True)
class RolloutStage:
    """One stage of a rollout, and its state."""

    name: str
    state: str
    """One of "done", "here" and "ahead"."""
    text: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit of the guardrail as a table row."""

    bound: Bound
    finding: LimitState
    value: str
    other: str
    limit: str
    waits: tuple[str, ...]


# List


@require_GET
def rollouts(request: HttpRequest) -> HttpResponse:
    """List running, proposed and past rollouts."""
    team = team_of(request)
    shown = page(_rows(team).exclude(state__in=_OPEN), request.GET.get("cursor", ""), "created")
    context = {
        "section": "rollouts",
        "team": team,
        "active": active_version(team),
        "chosen": team.active_id is not None,
        "under_way": _rows(team).filter(state__in=Rollout.UNDER_WAY).first(),
        "waiting": list(_rows(team).filter(state=State.PROPOSED).order_by("created")),
        "rows": shown.rows,
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
        "may_propose": allowed(request, team, "write"),
    }
    return render(request, "policies/rollouts/list.html", context)


def _rows(team: Team) -> QuerySet[Rollout]:
    return Rollout.objects.filter(team=team).select_related(
        "version__policy", "before__policy", "proposed_by", "decided_by"
    )


# One rollout


@require_GET
def rollout(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Show a rollout: its changes, progress, sessions, and possible actions."""
    return _shown(request, rollout_id)


def _found(request: HttpRequest, rollout_id: UUID) -> Rollout:
    found = rollout_of_teams(teams_of(request), rollout_id)
    if found is None:
        raise Http404("no such rollout")
    return found


def _shown(request: HttpRequest, rollout_id: UUID, refusal: str = "") -> HttpResponse:
    version = version_of(rollout_id)  # before the rows: a change in between is announced again
    found = _found(request, rollout_id)
    findings = findings_of(found)
    before = found.before or active_version(found.team)
    context = {
        "section": "rollouts",
        "team": found.team,
        "rollout": found,
        "before": before,
        "proposer": actions.title(found.proposed_by),
        "decider": actions.title(found.decided_by),
        "stages": _stages(found),
        "buttons": buttons(found, before, _user(request)),
        "refusal": refusal,
        "findings": findings,
        "rows": rows_of(found, findings),
        "errors": [
            _per_hundred(side.errors, side.steps) for side in (findings.new, findings.other)
        ],
        "changes": changes(before.document, found.version.document),
        "evidence": evidence(found),
        "remarks": remarks_of(found.version),
        "entries": _history(found),
        "may_check": allowed(request, found.team, "write") and found.state in Rollout.UNDER_WAY,
        "version": version,
    }
    return render(
        request, "policies/rollouts/rollout.html", context, status=409 if refusal else 200
    )


def version_of(rollout_id: UUID) -> int:
    """The version of the page's topic, 0 if there is no such rollout; see `consumers`."""
    versions = topic_versions([rollout_id])
    return versions[rollout_id][1] if versions else 0


def _user(request: HttpRequest) -> User:
    assert request.user.is_authenticated  # guaranteed by the sign-in middleware
    return request.user


def _per_hundred(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _stages(found: Rollout) -> list[RolloutStage]:
    """Past and future stages."""
    proposed = found.state == State.PROPOSED
    ended = found.state in (State.DECLINED, State.ROLLED_BACK)
    waits = "waiting for approval" if proposed else actions.title(found.proposed_by)
    made = [RolloutStage("Proposed", "here" if proposed else "done", waits)]
    for share in STAGES:
        if share < found.share:
            state = "done"
        elif share == found.share:
            state = "done" if ended else "here"
        else:
            state = "ahead"
        text = "all new sessions" if share == STAGES[-1] else "of new sessions"
        made.append(RolloutStage(f"{share} %", state, text))
    if ended:
        made = [one for one in made if one.state == "done"]
        made.append(RolloutStage(found.get_state_display().capitalize(), "here", found.reason))
    return made


def _history(found: Rollout) -> list[tuple[str, AuditEntry]]:
    """The audit entries of a rollout with their action in a word, newest first."""
    rows = AuditEntry.objects.filter(
        team=found.team, action__startswith="rollout.", detail__rollout=str(found.pk)
    )
    return [
        (entry.action.removeprefix("rollout.").replace("_", " "), entry)
        for entry in rows.order_by("-at", "-pk")[:HISTORY]
    ]


# Figures


def rows_of(found: Rollout, findings: Findings) -> list[LimitRow]:
    """Rows of the guardrail table."""
    return [
        LimitRow(
            BOUNDS[one.name],
            one,
            _figure(one.name, one.value),
            _figure(one.name, one.other),
            "off" if one.bound is None else BOUNDS[one.name].text(one.bound),
            tuple(missing(one)) if one.state == "few" else (),
        )
        for one in findings.bounds
    ]


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return money(round(value)) if name == "cost" else percent(value)


# Actions


@require_POST
def change(request: HttpRequest, rollout_id: UUID, act: Act) -> HttpResponse:
    """Perform an action, and show the rollout, or why the action was refused."""
    found = _found(request, rollout_id)
    try:
        ACTS[act](found, request, actor_of(request))
    except MayNot as error:
        require(request, found.team, "accept")
        return _shown(request, rollout_id, str(error))
    except CannotRollOut as error:
        return _shown(request, rollout_id, str(error))
    return redirect("rollout", rollout_id)


def _why(request: HttpRequest) -> str:
    return request.POST.get("reason", "")


def _share(request: HttpRequest) -> int:
    said = request.POST.get("share", "")
    return int(said) if said.isdecimal() and len(said) < 4 else 0


ACTS: dict[Act, Callable[[Rollout, HttpRequest, Actor], Rollout]] = {
    "accept": lambda found, _, actor: actions.accept(found, actor),
    "decline": lambda found, request, actor: actions.decline(found, actor, _why(request)),
    "widen": lambda found, request, actor: actions.widen(found, _share(request), actor),
    "pause": lambda found, request, actor: actions.pause(found, actor, _why(request)),
    "resume": lambda found, _, actor: actions.resume(found, actor),
    "roll_back": lambda found, request, actor: actions.roll_back(found, actor, _why(request)),
}


@require_POST
def check_now(request: HttpRequest, rollout_id: UUID) -> HttpResponse:
    """Run the guardrail check now, which may pause the rollout."""
    found = _found(request, rollout_id)
    require(request, found.team, "write")
    check(found)
    return redirect("rollout", rollout_id)


def version_named(request: HttpRequest, name: str, number: int) -> PolicyVersion:
    """A version of a policy of the team. Raises Http404."""
    rows = PolicyVersion.objects.select_related("policy__team__active")
    found = (
        None
        if "\x00" in name or number > 2**31 - 1
        else rows.filter(policy__team=team_of(request), policy__name=name, number=number).first()
    )
    if found is None:
        raise Http404("no such version")
    return found


PAGES = (
    Page(
        route="rollouts/",
        query=("cursor",),
        view=rollouts,
        name="rollouts",
        link=Link(65, "Rollouts", "rollouts", "g u", "rollouts", "Improve"),
        about="guardrail, share of sessions, A/B test",
    ),
    Page(route="rollouts/<uuid:rollout_id>/", view=rollout, name="rollout"),
    Page(
        route="rollouts/<uuid:rollout_id>/check/",
        view=check_now,
        name="rollout_check",
        needs={"POST": "write"},
    ),
    *(
        Page(
            route=f"rollouts/<uuid:rollout_id>/{act}/",
            view=change,
            name=f"rollout_{act}",
            needs={"POST": "accept"},
            arguments={"act": act},
        )
        for act in ACTS
    ),
)
