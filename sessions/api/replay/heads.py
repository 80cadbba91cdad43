"""The head of a manifest: the session, its runs, and what a page needs of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import Q

from sessions.actions.live.answer import standing_of
from sessions.models import Job, ManagedContext, Pin, Run, Session
from sessions.models.lab.simulations import simulation_key
from sessions.models.web.statements import Statement, given_text, given_uuid


def ratio_of(session: Session) -> int:
    return session.token_ratio


def heads_of(session: Session, run: Run) -> dict[str, Any]:
    return {
        "session": _session(session, run),
        "run": {
            "id": run_name(run),
            "origin": run.origin,
            "label": run_label(run),
            "policy": str(run.policy_version) if run.policy_version else None,
            "summary": run.figures,
            "recites": _recites(session, run),
            "recited_next": run.fold.get("recited", 0),
        },
        "runs": _runs(session),
        "lines": {"trigger": run.figures.get("trigger_tokens")},
        "pins": _PINS.column(session=session.pk),
    }


def _recites(session: Session, run: Run) -> bool:
    version = run.policy_version
    if version is None:
        return False
    managed = run.origin == Run.Origin.MANAGED
    document = (session.policy_document if managed else None) or version.document
    return document.get("recite") is not None


def run_name(run: Run) -> str:
    return "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk)


def run_label(run: Run) -> str:
    """The label of a run on pages."""
    if run.policy_version is None:
        return "recorded" if run.origin == Run.Origin.RECORDED else run.origin
    return run.policy_version.policy.name


def _session(session: Session, run: Run) -> dict[str, Any]:
    children = _CHILDREN.rows(session=session.pk)
    parent = session.parent
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "title": str(session),
        "agent": session.agent,
        "source": session.source,
        "model": session.model,
        "window": session.window_taken,
        "window_assumed": session.window is None,
        "ratio": session.token_ratio,
        "basis": session.token_basis,
        "steps": session.step_count,
        "hidden": session.hidden_tokens + run.figures.get("added_tokens", 0),
        "cost_at_least": session.cost_is_bound,
        "handed_out": bool(_HANDED_OUT.column(session=session.pk)),
        "version": session.version,
        "live": session.live,
        "used": session.used_tokens,
        "outcome": session.outcome,
        "policy": str(session.policy_version) if session.policy_version else None,
        "policy_from": session.policy_from,
        "budget": asdict(standing_of(session)),
        "parent": {"id": str(parent.pk), "title": str(parent), "step": session.parent_step}
        if parent
        else None,
        "children": [
            {
                "id": str(child.pk),
                "title": str(child),
                "step": child.parent_step,
                "steps": child.step_count,
                "tokens_peak": child.peak_tokens,
                "ended": child.ended_at,
                "cost_microusd": child.cost_microusd,
                "cost_at_least": child.cost_is_bound,
            }
            for child in children
        ],
    }


def _runs(session: Session) -> list[dict[str, Any]]:
    runs = [
        {
            "id": run_name(run),
            "origin": run.origin,
            "label": run_label(run),
            "policy": str(run.policy_version) if run.policy_version else None,
            "state": "ready",
            "job": None,
            "revisions": run.head,
        }
        for run in _RUNS.rows(session=session.pk)
    ]
    runs.extend(
        {
            "id": job.payload["policy"],
            "origin": "simulated",
            "label": job.payload["policy"].partition("@")[0],
            "policy": job.payload["policy"],
            "state": "running",
            "job": str(job.pk),
        }
        for job in _SIMULATING.rows(team=session.team_id, key=simulation_key(session))
    )
    return runs


_SIMULATING = Statement(
    # As the index of unfinished keys says it, which then is read instead of the team's jobs.
    lambda: Job.objects.filter(
        ~Q(dedupe=""),
        team_id=given_uuid("team"),
        state__in=[Job.State.QUEUED, Job.State.RUNNING],
        dedupe__startswith=given_text("key"),
    )
)
_PINS = Statement(
    lambda: (
        Pin.objects.filter(session_id=given_uuid("session"))
        .order_by("message__seq")
        .values_list("message__seq")
    )
)
_CHILDREN = Statement(
    lambda: Session.objects.filter(parent_id=given_uuid("session")).order_by(
        "parent_step", "started_at"
    )
)
_HANDED_OUT = Statement(
    lambda: ManagedContext.objects.filter(run__session_id=given_uuid("session")).values_list("pk")[
        :1
    ]
)
_RUNS = Statement(
    lambda: (
        Run.objects.filter(session_id=given_uuid("session"))
        .select_related("policy_version__policy")
        .only("origin", "head", "policy_version__number", "policy_version__policy__name")
        .order_by("created")
    )
)
