"""The replay and diff pages: shells whose components fetch the data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from sessions.access import allowed, session_of
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.actions.demo.demo_tuning import NAME as DEMO_POLICY
from sessions.actions.demo.demo_tuning import is_of_demo
from sessions.actions.policies.policies import to_simulate
from sessions.models import Policy, Run, Session
from sessions.models.ingestion.counted import not_stored
from sessions.models.masking import counted
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.models.record.shown_runs import shown_origin
from sessions.views.live.forecasts import shown_forecast
from sessions.views.live.live import limits
from sessions.views.web.pages import Page

_SOME_ID = UUID(int=0)


def _addresses(session: Session) -> dict[str, str]:
    """URLs for the components; `{a}`, `{b}` and `{id}` are placeholders."""
    own = {
        f"{name}_url": reverse(f"api:{name}", args=[session.pk])
        for name in (
            *("manifest", "previews", "events", "entry", "diff"),
            *("simulate", "context", "recitation", "find", "texts", "sources", "step_notes"),
        )
    }
    diff_page = reverse("diff", args=[session.pk, 0, 0])
    return own | {
        "list_url": reverse("sessions"),
        "replay_url": reverse("replay", args=[session.pk]),
        "diff_page_url": diff_page.replace("/0..0/", "/{a}..{b}/"),
        "revision_url": reverse("revision", args=[session.pk, "-run-", 0])
        .replace("-run-", "{run}")
        .replace("/0/", "/{number}/"),
        "compare_runs_url": reverse("compare", args=[session.pk, session.pk]),
        "session_url": _with_id(reverse("replay", args=[_SOME_ID])),
        "job_url": _with_id(reverse("api:job", args=[_SOME_ID])),
    }


def _with_id(address: str) -> str:
    return address.replace(str(_SOME_ID), "{id}")


def _to_simulate(session: Session) -> list[str]:
    """Policies that the menu of runs offers; the demo's are for its own sessions."""
    own = Policy.objects.filter(team=session.team, name=DEMO_POLICY)
    hides = not session.demo and any(is_of_demo(one) for one in own)
    offered = to_simulate(session.team)
    return [one for one in offered if not (hides and one.split("@")[0] == DEMO_POLICY)]


@require_GET
def replay(request: HttpRequest, session_id: UUID, step: int | None = None) -> HttpResponse:
    """Show the context at each step of a session; by default at the last one."""
    session = session_of(request, session_id)
    writes = allowed(request, session.team, "write")
    props: dict[str, Any] = _addresses(session) | {"step": step}
    props["may_note"] = writes or allowed(request, session.team, "review")
    if session.team.show_masked and allowed(request, session.team, "reveal"):
        props["reveal_url"] = reverse("api:reveal", args=[session.pk])
    if writes:
        props["policies"] = _to_simulate(session)
    else:
        del props["simulate_url"]
    run = ""
    if session.source == SOURCE_LIVE:
        props["limits"] = limits(session)
        if session.policy_version_id is not None and writes:
            props["pins_url"] = reverse("api:pins", args=[session.pk])
            props["compactions_url"] = reverse("api:compactions", args=[session.pk])
        if shown_origin(session) == Run.Origin.MANAGED:
            props["default_run"] = Run.Origin.MANAGED
            run = f"run={Run.Origin.MANAGED}&"
    verdict = verdict_on_session(session, managed=bool(run))
    if asked := request.GET.get("run"):
        run = f"{urlencode({'run': asked})}&"
    if verdict is not None:
        props["verdict"] = asdict(verdict)
    preloaded = f"{props['manifest_url']}?{run}packed=true"
    context = {"section": "sessions", "session": session, "props": props, "preloaded": preloaded}
    context["not_stored"] = not_stored(session)
    context["masked"] = counted.of_session(session)
    if session.live:
        context |= {"live": True, **shown_forecast(session)}
        context["may"] = allowed(request, session.team, "accept")
    return render(request, "replay/replay.html", context)


@require_GET
def diff(request: HttpRequest, session_id: UUID, a: int, b: int) -> HttpResponse:
    """Show the difference between the contexts of two steps."""
    session = session_of(request, session_id)
    props: dict[str, Any] = _addresses(session) | {
        "a": a,
        "b": b,
        "run": request.GET.get("run", "recorded"),
        "with": request.GET.get("with", ""),
    }
    beside = props["with"] not in ("", props["run"])
    title = f"Step {a}, two runs" if beside and a == b else f"Steps {a} → {b}"
    context = {"section": "sessions", "session": session, "props": props, "title": title}
    return render(request, "replay/diff.html", context)


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/",
        query=("run", "m", "view", "x"),
        view=replay,
        name="replay",
    ),
    Page(
        route="sessions/<uuid:session_id>/steps/<int:step>/",
        query=("run", "m", "view", "x"),
        view=replay,
        name="replay_step",
    ),
    Page(
        route="sessions/<uuid:session_id>/diff/<int:a>..<int:b>/",
        query=("run", "with"),
        view=diff,
        name="diff",
    ),
)
