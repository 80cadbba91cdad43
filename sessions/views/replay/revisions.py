"""The page of one revision: trigger, removed entries, cost, and after-effects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from compaction.context.blocks import KINDS
from compaction.context.edits import OWN_COMPACTIONS, CannotUndo
from compaction.policies.trigger_words import words
from compaction.strategies import STRATEGIES
from sessions.access import actor_of, allowed, run_named, session_of
from sessions.actions.live.requests.on_request import undo_revision
from sessions.actions.reviews.sizes import (
    Size,
    call_of,
    off_by,
    sizes_of,
    sums_at,
    taken_out,
    written,
)
from sessions.marks import MARKS
from sessions.models import Revision, Run, Session
from sessions.models.record import manifest
from sessions.models.record.replaced import unseen
from sessions.views.masking.shown_masked import as_reader
from sessions.views.reviews import ledgers, removal
from sessions.views.web.names import run_name
from sessions.views.web.pages import Page
from sessions.views.web.places import diff_url, step_url
from sessions.views.web.sparklines import Segment, bar


@dataclass(frozen=True, slots=True)
class Composition:
    """The context of a step by kind, as a bar and as numbers."""

    step: int
    total: int
    sums: list[int]
    segments: list[Segment]


@require_GET
def revision(request: HttpRequest, session_id: UUID, run: str, number: int) -> HttpResponse:
    """Show a compaction, offload or rewind: before, after, and its effects."""
    return _shown(request, session_of(request, session_id), run, number)


@require_POST
def undo(request: HttpRequest, session_id: UUID, run: str, number: int) -> HttpResponse:
    """Undo a revision of the managed run and show the revision that does so, or why it is
    refused."""
    session = session_of(request, session_id, "write")
    its_run = run_named(session, run)
    if its_run.origin != Run.Origin.MANAGED:
        raise Http404("only revisions of a managed context can be undone")
    try:
        made = undo_revision(session, number, actor_of(request))
    except CannotUndo as error:
        with as_reader(request):
            session = session_of(request, session_id, "write")
            return _shown(request, session, run, number, refusal=str(error))
    return redirect("revision", session.pk, run_name(its_run), made.number)


def _shown(
    request: HttpRequest, session: Session, run: str, number: int, refusal: str = ""
) -> HttpResponse:
    its_run = run_named(session, run)
    found = (
        its_run.revisions.select_related("run", "policy_version__policy")
        .filter(number=number)
        .first()
    )
    if found is None:
        raise Http404("no such revision")
    before, after = sizes_of(session, found)
    removed = _removal(session, found)
    compositions = _compositions(session, found, before)
    context = {
        "section": "sessions",
        "team": session.team,
        "session_name": str(session),
        "session": session,
        "run": its_run,
        "revision": found,
        "reached": found.step <= session.step_count,
        "refusal": refusal,
        "may_undo": its_run.origin == Run.Origin.MANAGED
        and allowed(request, session.team, "write"),
        "trigger": words(found.trigger, session.agent),
        "parameters": _parameters(found),
        **_following(session, found),
        **ledgers.shown(request, session, found),
        **_title(found),
        **_sizes(before, after),
        **compositions,
        **removed,
        "taken_out": taken_out(compositions["counted_before"], before, removed["removed_tokens"]),
        "came_in": max(compositions["total_change"] + removed["removed_tokens"], 0),
        **_places(session, its_run, found),
    }
    return render(request, "replay/revision/revision.html", context)


def _sizes(before: Size | None, after: Size | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"before": before, "after": after, "change": None}
    if before and after and before.tokens:
        shown["change"] = after.tokens / before.tokens - 1
        shown["change_share"] = abs(shown["change"])
    return shown


def _title(revision: Revision) -> dict[str, str]:
    """The symbol and title of a revision: of its last strategy, else of its trigger."""
    made_by = set(revision.edits.values_list("strategy", flat=True))
    found = [one for one in STRATEGIES.values() if one.name in made_by]
    if found:
        return {"symbol": MARKS[found[-1].event].symbol, "name": found[-1].title}
    own = ["compaction"] if revision.trigger in OWN_COMPACTIONS else []
    names = [*made_by, revision.trigger, *own, "edit"]
    mark = next(MARKS[one] for one in names if one in MARKS)
    return {"symbol": mark.symbol, "name": mark.name}


def _parameters(revision: Revision) -> str:
    if not revision.parameters:
        return ""
    return json.dumps(revision.parameters, ensure_ascii=False, indent=2)


def _following(session: Session, revision: Revision) -> dict[str, Any]:
    call = call_of(session, revision.run, revision.step)
    if call is None:
        return {"call": None}
    return {"call": call, "call_written": written(call)}


def _compositions(session: Session, revision: Revision, before: Size | None) -> dict[str, Any]:
    table = manifest.columns(revision.run)
    steps = (revision.step - 1, revision.step)
    sums = [sums_at(session, table, step) for step in steps]
    totals = [sum(one) + session.hidden_tokens for one in sums]
    top = max(*totals, session.window or 0)
    compositions = [
        Composition(step, total, one, bar(one, session.hidden_tokens, top))
        for step, total, one in zip(steps, totals, sums, strict=True)
    ]
    kinds = [
        (kind, before, after, after - before)
        for kind, before, after in zip(KINDS, *sums, strict=True)
        if before or after
    ]
    off = off_by(compositions[0].total, before)
    return {
        "compositions": compositions if revision.step > 1 else compositions[1:],
        "kinds": kinds,
        "counted_before": totals[0],
        "disagreement": off,
        "disagreement_size": abs(off or 0),
        "total_change": totals[1] - totals[0],
        "bar_top": top,
        "window_x": 1000 * session.window / top if session.window else None,
    }


def _removal(session: Session, revision: Revision) -> dict[str, Any]:
    groups = removal.groups(session, revision)
    exchanged, exchange_count = removal.exchanges(session, revision)
    count = sum(group.count for group in groups)
    tokens = sum(group.tokens for group in groups)
    return {
        "groups": groups,
        "removed_count": count,
        "removed_tokens": tokens,
        "unseen": unseen(session, revision, tokens),
        "removed": removal.rows(session, revision),
        "without_stub": count - exchange_count,
        "exchanges": exchanged,
        "exchange_count": exchange_count,
        "summaries": removal.summaries(session, revision),
        "rows_shown": removal.ROWS_SHOWN,
    }


def _places(session: Session, run: Run, revision: Revision) -> dict[str, Any]:
    numbers = run.revisions.order_by("number").values_list("number", flat=True)
    return {
        "run_name": run_name(run),
        "simulated": run.origin == Run.Origin.SIMULATED,
        "before_step": revision.step - 1,
        "before_url": step_url(session, revision.step - 1, run),
        "after_url": step_url(session, revision.step, run),
        "diff_url": diff_url(session, revision.step - 1, revision.step, run),
        "beside": numbers.filter(step=revision.step).exclude(number=revision.number),
        "earlier": numbers.filter(number__lt=revision.number).last(),
        "later": numbers.filter(number__gt=revision.number).first(),
    }


PAGES = (
    Page(
        route="sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/",
        query=("facts",),
        view=revision,
        name="revision",
    ),
    Page(
        route="sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/undo/",
        view=undo,
        name="revision_undo",
        needs={"POST": "write"},
    ),
)
