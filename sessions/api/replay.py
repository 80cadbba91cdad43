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
from sessions.api.access import run_of, session_of
from sessions.api.entries import describe
from sessions.api.following import manifest_json, run_label, version_of
from sessions.api.problems import problem
from sessions.models import Revision
from sessions.models import manifest as manifests

ROWS_AT_ONCE = 500
_ACCEPTS_GZIP = re.compile(r"\bgzip\b")


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


@require_GET
def manifest(request: HttpRequest, session_id: UUID | str) -> HttpResponse:
    """All entries of a run in context order, figures per step, events: enough to draw any step.

    With `?since=` what came after that (see `following`).
    """
    session = session_of(request, session_id)
    run = run_of(request, session)
    etag = f'"{version_of(session, run)}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    response = _packed(request, manifest_json(session, run, request.GET.get("since", "")))
    response["ETag"] = etag
    return response


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
