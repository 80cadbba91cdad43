"""What the replay and diff pages fetch: manifest, previews, one entry, a diff."""

from __future__ import annotations

import gzip
import re
from typing import Any

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from compaction import diff as diffs
from compaction.context import KINDS
from sessions.actions.recited import recited_at
from sessions.actions.served import NoSuchStep
from sessions.api import shapes
from sessions.api.access import run_named, run_of, session_of
from sessions.api.entries import describe
from sessions.api.following import manifest_json, run_label, version_of
from sessions.api.problems import Refusal
from sessions.models import Revision, Run
from sessions.models import manifest as manifests

ROWS_AT_ONCE = 500
LAST = 999_999_999
RUN = "recorded, served, the name of a policy that was simulated, or the id of a run"
UNCHANGED: dict[str, Any] = {"responses": {304: {"description": "Not Modified"}}}
_ACCEPTS_GZIP = re.compile(r"\bgzip\b")

router = Router(tags=["Replay"])


def answer(request: HttpRequest, body: Any) -> HttpResponse:
    """A JSON object, packed where that pays."""
    return _packed(request, msgspec.json.encode(body))


def _packed(request: HttpRequest, data: bytes) -> HttpResponse:
    response = HttpResponse(data, content_type="application/json")
    response["Cache-Control"] = "private, no-cache"
    if len(data) > 1000 and _ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
        response.content = gzip.compress(data, 3)
        response["Content-Encoding"] = "gzip"
    response["Vary"] = "Accept-Encoding, Cookie"
    return response


@router.get(
    "sessions/{path:session_id}/manifest",
    response=dict,
    url_name="manifest",
    openapi_extra=UNCHANGED,
)
def manifest(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    since: str = Query("", description="`next` of an earlier one: what came after it"),
) -> HttpResponse:
    """Gives all entries of a run in context order, figures per step, and events.

    An entry stands at step N where `from` <= N and (`to` = 0 or N < `to`).
    """
    session = session_of(request, session_id)
    shown = run_of(request, session)
    etag = f'"{version_of(session, shown)}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    response = _packed(request, manifest_json(session, shown, since))
    response["ETag"] = etag
    return response


@router.get("sessions/{path:session_id}/previews", response=dict, url_name="previews")
def previews(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    start: int = Query(0, alias="from", ge=0, le=LAST),
    end: int | None = Query(None, alias="to", ge=0, le=LAST),
) -> HttpResponse:
    """Gives one line each for the entries [from, to) of a run, at most 500 of them."""
    session = session_of(request, session_id)
    shown = run_of(request, session)
    last = min(start + 200 if end is None else end, start + ROWS_AT_ONCE)
    rows = manifests.previews(session, shown, start, last) if last > start else []
    return answer(request, {"from": start, "rows": rows})


@router.get("sessions/{path:session_id}/entry", response=dict, url_name="entry")
def entry(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    i: int = Query(0, ge=0, le=LAST, description="place in context order"),
) -> HttpResponse:
    """Gives one entry of a run with its content and every version it had."""
    session = session_of(request, session_id)
    shown = run_of(request, session)
    standing = manifests.entry_at(session, shown, i)
    if standing is None:
        raise Http404("no such entry")
    return answer(request, {"i": i, **describe(session, shown, standing)})


@router.get(
    "sessions/{path:session_id}/recitation", response=shapes.Recitation, url_name="recitation"
)
def recitation(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    step: int = Query(1, ge=1, le=LAST),
) -> HttpResponse:
    """Gives what a run's policy recites at the end of the context of a step; empty for nothing."""
    session = session_of(request, session_id)
    try:
        end = recited_at(session, run_of(request, session), step)
    except NoSuchStep as error:
        raise Refusal(422, "No such step", str(error), field="?step") from None
    return answer(request, {"step": step, "tokens": end.tokens, "text": end.text})


@router.get("sessions/{path:session_id}/diff", response=dict, url_name="diff")
def diff(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    a: int = Query(1, ge=0, le=LAST, description="a step"),
    b: int = Query(1, ge=0, le=LAST, description="another"),
    beside: str = Query("", alias="with", description="the run of b, where it is another"),
) -> HttpResponse:
    """Tells what stayed, left, came or was replaced between the contexts of two steps.

    With another run, `of` says on which side the revision is that made a difference.
    """
    session = session_of(request, session_id)
    shown = run_of(request, session)
    other = run_named(session, beside) if beside else shown
    if other.pk == shown.pk:
        rows = diffs.diff(manifests.columns(shown), a, b, session.scaled)
    else:
        rows = diffs.across(_context(shown, a), _context(other, b), session.scaled)
    revisions = {"a": _revisions(shown), "b": _revisions(other)}
    return answer(
        request,
        {
            "a": {"step": a, "tokens": sum(row.tokens_a for row in rows), "run": run_label(shown)},
            "b": {"step": b, "tokens": sum(row.tokens_b for row in rows), "run": run_label(other)},
            "rows": [_diff_row(row, revisions[row.of].get(row.revision)) for row in rows],
        },
    )


def _context(run: Run, step: int) -> diffs.Context:
    return diffs.Context(
        manifests.columns(run), step, manifests.REPLACEMENT, manifests.replaced_texts(run)
    )


def _revisions(run: Run) -> dict[int, Revision]:
    return {row.number: row for row in run.revisions.defer("parameters")}


def _diff_row(row: diffs.DiffRow, revision: Revision | None) -> dict[str, Any]:
    return {
        "of": row.of,
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
