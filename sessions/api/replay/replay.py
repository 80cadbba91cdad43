"""Data for the replay and diff pages: manifest, previews, entries, diffs."""

from __future__ import annotations

import gzip
import re
from typing import Any

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.context import diff as diffs
from compaction.context.blocks import KINDS
from sessions.access import run_named, run_of, session_of
from sessions.actions.live.handing_out.recited import recited_at
from sessions.actions.live.managed import NoSuchStep
from sessions.api.live.shapes import Recitation
from sessions.api.replay.entries import describe
from sessions.api.replay.following import events_json, manifest_json, version_of
from sessions.api.replay.heads import run_label
from sessions.api.web.problems import Refusal
from sessions.models import Revision, Run, Session
from sessions.models.record import manifest as manifests
from sessions.models.record.delta import placed_columns
from sessions.models.web.shown import as_stored, value
from sessions.models.web.statements import StatementAmong, given_int, given_uuid

ROWS_AT_ONCE = 500
LAST = 999_999_999
RUN = "recorded, managed, seen (what the model saw), the name of a simulated policy, or a run id"
UNCHANGED: dict[str, Any] = {"responses": {304: {"description": "Not Modified"}}}
_ACCEPTS_GZIP = re.compile(r"\bgzip\b")

router = Router(tags=["Replay"])


def answer(request: HttpRequest, body: Any) -> HttpResponse:
    """A JSON response, compressed if worthwhile."""
    return _packed(request, msgspec.json.encode(body))


def _packed(request: HttpRequest, data: bytes) -> HttpResponse:
    response = HttpResponse(data, content_type="application/json")
    response["Cache-Control"] = "no-store"
    if len(data) > 1000 and _ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")):
        response.content = gzip.compress(data, 2)
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
    since: str = Query("", description="`next` of an earlier answer, to get only changes"),
    packed: bool = Query(False, description="columns as our pages read them"),
) -> HttpResponse:
    """Get all entries, figures and events of a run: entries in context order, figures per step.

    An entry is in the context of step N if `from` <= N and (`to` = 0 or N < `to`).
    """
    session = session_of(request, session_id)
    shown = run_of(request, session)
    etag = f'"{version_of(session, shown)}"'
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers={"ETag": etag})
    response = _packed(request, manifest_json(session, shown, since, packed=packed))
    response["ETag"] = etag
    return response


@router.get("sessions/{path:session_id}/events", response=dict, url_name="events")
def events(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
) -> HttpResponse:
    """Get the events of a run, with their labels and its cards of cache breaks.

    Packed manifests leave out those of all but the last 100 events.
    """
    session = session_of(request, session_id)
    return _packed(request, events_json(run_of(request, session)))


@router.get("sessions/{path:session_id}/previews", response=dict, url_name="previews")
def previews(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    start: int = Query(0, alias="from", ge=0, le=LAST),
    end: int | None = Query(None, alias="to", ge=0, le=LAST),
    at: str = Query("", pattern=r"^([0-9]{1,9}(,[0-9]{1,9})*)?$", description="indexes instead"),
) -> HttpResponse:
    """Get one-line previews of entries, those [from, to) of a run, at most 500.

    With `at`, the previews of the entries with these indexes; null beyond the end.
    """
    session = session_of(request, session_id)
    shown = run_of(request, session)
    if at:
        indexes = [int(index) for index in at.split(",")[:ROWS_AT_ONCE]]
        lines = manifests.previews_at(session, shown, indexes)
        return answer(request, {"at": indexes, "rows": lines})
    last = min(start + 200 if end is None else end, start + ROWS_AT_ONCE)
    rows = manifests.previews(session, shown, start, last) if last > start else []
    return answer(request, {"from": start, "rows": rows})


@router.get("sessions/{path:session_id}/entry", response=dict, url_name="entry")
def entry(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    i: int = Query(0, ge=0, le=LAST, description="index in context order"),
) -> HttpResponse:
    """Get one entry with all its versions."""
    session = session_of(request, session_id)
    shown = run_of(request, session)
    standing = manifests.entries_between(session, shown, i, i + 1)
    if not standing:
        raise Http404("no such entry")
    return answer(request, {"i": i, **describe(session, shown, standing[0])})


@router.get("sessions/{path:session_id}/recitation", response=Recitation, url_name="recitation")
def recitation(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    step: int = Query(1, ge=1, le=LAST),
) -> HttpResponse:
    """Get the text that a policy recites at the end of a step's context; may be empty."""
    session = session_of(request, session_id)
    try:
        its_run = run_of(request, session)
        with as_stored():
            end = recited_at(session, its_run, step)
    except NoSuchStep as error:
        raise Refusal(422, "No such step", str(error), field="?step") from None
    return answer(request, {"step": step, "tokens": end.tokens, "text": value(end.text)})


@router.get("sessions/{path:session_id}/diff", response=dict, url_name="diff")
def diff(
    request: HttpRequest,
    session_id: str,
    run: str = Query("recorded", description=RUN),
    a: int = Query(1, ge=0, le=LAST, description="a step"),
    b: int = Query(1, ge=0, le=LAST, description="another"),
    beside: str = Query("", alias="with", description="the run of b, if different"),
) -> HttpResponse:
    """Compare the contexts of two steps: entries kept, removed, added or replaced.

    With another run, `of` says which side's revision made the difference.
    """
    session = session_of(request, session_id)
    shown = run_of(request, session)
    other = run_named(session, beside) if beside else shown
    if other.pk == shown.pk:
        rows = diffs.diff(placed_columns(session, shown), a, b, session.scaled)
    else:
        rows = diffs.across(
            _context(session, shown, a), _context(session, other, b), session.scaled
        )
    revisions = {side: _reasons(run, side, rows) for side, run in (("a", shown), ("b", other))}
    return answer(
        request,
        {
            "a": {"step": a, "tokens": sum(row.tokens_a for row in rows), "run": run_label(shown)},
            "b": {"step": b, "tokens": sum(row.tokens_b for row in rows), "run": run_label(other)},
            "rows": [_shown(row, revisions[row.of].get(row.revision)) for row in rows],
        },
    )


def _context(session: Session, run: Run, step: int) -> diffs.StepContext:
    texts = manifests.replaced_texts(run, step)
    return diffs.StepContext(placed_columns(session, run), step, manifests.REPLACEMENT, texts)


def _reasons(run: Run, side: str, rows: list[diffs.DiffRow]) -> dict[int, str]:
    """Why the revisions of this side's rows were made."""
    numbers = list({row.revision for row in rows if row.of == side and row.revision})
    found = _REASONS.rows(numbers, run=run.pk)
    return {number: reason or trigger for number, reason, trigger in found}


_REASONS = StatementAmong(
    lambda numbers: Revision.objects.filter(
        run_id=given_uuid("run"), number__in=numbers
    ).values_list("number", "reason", "trigger"),
    given_int,
)


class _DiffRow(msgspec.Struct, gc=False):
    """A row as sent: structs are made and encoded several times faster than dictionaries."""

    of: str
    op: str
    kind: str
    a: list[int]
    b: list[int]
    tokens_a: int
    tokens_b: int
    reason: str | None
    revision: int | None


def _shown(row: diffs.DiffRow, reason: str | None) -> _DiffRow:
    return _DiffRow(
        row.of,
        row.op,
        KINDS[row.kind],
        row.a,
        row.b,
        row.tokens_a,
        row.tokens_b,
        reason,
        row.revision if reason is not None else None,
    )
