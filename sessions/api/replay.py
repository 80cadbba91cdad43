"""What the replay and diff pages fetch: manifest, previews, one entry, a diff."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from compaction import diff as diffs
from compaction.context import KINDS
from compaction.policy import PRESETS
from sessions.actions.simulate import UNKNOWN_WINDOW
from sessions.api.access import run_of, session_of
from sessions.api.entries import describe
from sessions.api.problems import problem
from sessions.models import Job, Revision, Run, Session
from sessions.models import delta
from sessions.models import manifest as manifests

ROWS_AT_ONCE = 500
_ACCEPTS_GZIP = re.compile(r"\bgzip\b")


def answer(request: HttpRequest, body: Any, spliced: bytes = b"{}") -> HttpResponse:
    """A JSON object, with the fields of an encoded one spliced in, packed where that pays."""
    data = msgspec.json.encode(body)
    if len(spliced) > 2:
        data = data[:-1] + b"," + spliced[1:]
    response = HttpResponse(data, content_type="application/json")
    response["Cache-Control"] = "private, no-cache"
    if len(data) > 1000 and _ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
        response.content = gzip.compress(data, 3)
        response["Content-Encoding"] = "gzip"
    response["Vary"] = "Accept-Encoding, Cookie"
    return response


def run_label(run: Run) -> str:
    """How a run is called on pages."""
    if run.policy_version is None:
        return "as recorded" if run.origin == Run.Origin.RECORDED else run.origin
    return run.policy_version.policy.name


@require_GET
def manifest(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """All entries of a run in context order, figures per step, events: enough to draw any step."""
    session = session_of(request, session_id)
    run = run_of(request, session)
    etag = f'"{session.version}-{run.pk.hex}-{run.head}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    body = {
        "v": 1,
        "session": _session(session),
        "run": {
            "id": "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk),
            "origin": run.origin,
            "label": run_label(run),
            "policy": str(run.policy_version) if run.policy_version else None,
            "summary": run.figures,
        },
        "runs": _runs(session),
        "presets": [name for name in PRESETS if name != "unmanaged"],
        "lines": {"trigger": run.figures.get("trigger_tokens")},
        "kinds": KINDS,
        "entries": msgspec.Raw(delta.entries(session, run).json),
    }
    response = answer(request, body, manifests.unpack(run.columns))
    response["ETag"] = etag
    return response


def _session(session: Session) -> dict[str, Any]:
    children = session.children.order_by("parent_step", "started_at")
    parent = session.parent
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "title": str(session),
        "agent": session.agent,
        "source": session.source,
        "model": session.model,
        "window": session.window or UNKNOWN_WINDOW,
        "window_assumed": session.window is None,
        "ratio": session.token_ratio,
        "basis": session.token_basis,
        "steps": session.step_count,
        "hidden": session.hidden_tokens,
        "cost_at_least": session.cost_at_least,
        "version": session.version,
        "live": False,
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
            }
            for child in children
        ],
    }


def _runs(session: Session) -> list[dict[str, Any]]:
    runs = [
        {
            "id": "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk),
            "origin": run.origin,
            "label": run_label(run),
            "state": "ready",
            "job": None,
        }
        for run in session.runs.select_related("policy_version__policy").order_by("created")
    ]
    pending = Job.objects.filter(
        team_id=session.team_id,
        kind="simulate",
        payload__session=str(session.pk),
        state__in=[Job.State.QUEUED, Job.State.RUNNING],
    )
    runs.extend(
        {
            "id": job.payload["policy"],
            "origin": "simulated",
            "label": job.payload["policy"],
            "state": "running",
            "job": str(job.pk),
        }
        for job in pending
    )
    return runs


def _number(request: HttpRequest, name: str, default: int = 0) -> int:
    text = request.GET.get(name, str(default))
    if not text.isdecimal() or len(text) > 9:
        raise _NotANumber(name)
    return int(text)


class _NotANumber(ValueError):
    """A query parameter that must be a whole number is none."""


def _with_numbers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except _NotANumber as error:
            return problem(
                422,
                "Not a number",
                f"{error} must be a whole number from 0 to 999,999,999.",
                field=f"?{error}",
            )

    return wrapped


@require_GET
@_with_numbers
def previews(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """One line each for the entries [from, to) of a run, at most 500 of them."""
    session = session_of(request, session_id)
    run = run_of(request, session)
    start = _number(request, "from")
    end = min(_number(request, "to", start + 200), start + ROWS_AT_ONCE)
    rows = manifests.previews(session, run, start, end) if end > start else []
    return answer(request, {"from": start, "rows": rows})


@require_GET
@_with_numbers
def entry(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """One entry of a run with its content and every version it had."""
    session = session_of(request, session_id)
    run = run_of(request, session)
    index = _number(request, "i")
    standing = manifests.entry_at(session, run, index)
    if standing is None:
        raise Http404("no such entry")
    return answer(request, {"i": index, **describe(session, run, standing)})


@require_GET
@_with_numbers
def diff(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The contexts of two steps against each other: what stayed, left, came, was replaced."""
    session = session_of(request, session_id)
    run = run_of(request, session)
    a, b = _number(request, "a", 1), _number(request, "b", 1)
    rows = diffs.diff(manifests.columns(run), a, b, session.scaled)
    revisions = {row.number: row for row in run.revisions.all()}
    return answer(
        request,
        {
            "a": {"step": a, "tokens": sum(row.tokens_a for row in rows), "run": run_label(run)},
            "b": {"step": b, "tokens": sum(row.tokens_b for row in rows), "run": run_label(run)},
            "rows": [_diff_row(row, revisions.get(row.revision)) for row in rows],
        },
    )


def _diff_row(row: diffs.DiffRow, revision: Revision | None) -> dict[str, Any]:
    return {
        "op": row.op,
        "kind": KINDS[row.kind],
        "a": row.a,
        "b": row.b,
        "tokens_a": row.tokens_a,
        "tokens_b": row.tokens_b,
        "label": "",
        "reason": (revision.reason or revision.trigger) if revision else None,
        "revision": revision.number if revision else None,
    }
