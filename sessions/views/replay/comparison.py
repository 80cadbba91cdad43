"""The comparison of two sessions side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from compaction.context.align import AlignedOp, AlignedStep
from sessions.access import session_of
from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import (
    ComparedFigure,
    ComparedStep,
    Comparison,
    TooManySteps,
    value_text,
)
from sessions.api.replay.comparison import compared
from sessions.figures import change, signed
from sessions.models import Run, Session
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import MissingBlob
from sessions.views.replay.compared_pictures import kinds_of, pictures_of
from sessions.views.web.names import run_name
from sessions.views.web.pages import Page
from sessions.views.web.places import step_url
from sessions.views.web.sparklines import HEIGHT

FOLDED = 4
"""Least steps in a row that are the same to show them as one line."""
GROUPS = 100
"""Lines of the aligned list on a page."""
UNFOLDED = 500
"""Most steps shown when such a line is opened."""

LABELS: dict[AlignedOp, str] = {
    "same": "same",
    "reworded": "reworded",
    "changed": "changed",
    "a": "only A",
    "b": "only B",
}
OF_RUNS: dict[AlignedOp, str] = {"same": "same context", "changed": "other context"}


@dataclass(frozen=True, slots=True)
class AlignedGroup:
    """Rows from place `start` on: one, or several the same."""

    start: int
    rows: Sequence[AlignedStep]
    of_runs: bool

    @property
    def end(self) -> int:
        """The place after its last row."""
        return self.start + len(self.rows)

    @property
    def named(self) -> str:
        """What a folded line says of its rows."""
        first, last = self.rows[0], self.rows[-1]
        alike = "with the same context" if self.of_runs else "the same"
        named = f"{len(self.rows):,} steps {alike}: {first.a}–{last.a}"
        if self.of_runs:
            return named
        named = f"{named} of A"
        return named if first.a == first.b else f"{named}, {first.b}–{last.b} of B"


@dataclass(frozen=True, slots=True)
class SideCell:
    """One session's step in a row, and where the replay shows it."""

    side: Literal["a", "b"]
    one: ComparedStep
    url: str


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """A row as the page shows it; a side without a step is None."""

    op: AlignedOp
    label: str
    cells: tuple[SideCell | None, SideCell | None]
    url: str
    here: bool


def _address(found: Comparison, name: str = "compare", /, **query: object) -> str:
    """A URL of the comparison, or of its rows."""
    runs = zip(("run", "with_run"), found.runs or (), strict=False)
    pairs = {key: run_name(run) for key, run in runs} | query
    address = reverse(name, args=[found.a.pk, found.b.pk])
    return f"{address}?{urlencode(pairs)}" if pairs else address


def _groups(found: Comparison, place: int | None) -> list[AlignedGroup]:
    """The rows in order, those that are the same in a row together, except around `place`."""
    made: list[AlignedGroup] = []
    of_runs = found.runs is not None
    for same, run in groupby(enumerate(found.rows), lambda row: row[1].op == "same"):
        rows = list(run)
        start, end = rows[0][0], rows[-1][0] + 1
        if same and len(rows) >= FOLDED and (place is None or not start <= place < end):
            made.append(AlignedGroup(start, [row for _, row in rows], of_runs))
        else:
            made += [AlignedGroup(at, [row], of_runs) for at, row in rows]
    return made


def _rows(
    found: Comparison, rows: Sequence[AlignedStep], here: AlignedStep | None
) -> Iterator[Any]:

    def cell(side: Literal["a", "b"], step: int | None) -> SideCell | None:
        if step is None:
            return None
        session, steps = (found.a, found.steps_a) if side == "a" else (found.b, found.steps_b)
        run = found.runs["ab".index(side)] if found.runs else None
        one = steps.get(step) or ComparedStep(step, "", False, None, None)
        return SideCell(side, one, step_url(session, step, run))

    for row in rows:
        asked = {"step": row.b, "side": "b"} if row.a is None else {"step": row.a}
        url = f"{_address(found, **asked)}#here"
        label = (OF_RUNS if found.runs else LABELS)[row.op]
        yield AlignedRow(row.op, label, (cell("a", row.a), cell("b", row.b)), url, row is here)


def _figure(one: ComparedFigure) -> dict[str, Any]:
    difference = change(one.change)
    if one.unit == "count" and one.name != "steps" and one.a is not None and one.b is not None:
        difference = signed(round(one.b - one.a))
    if one.unit == "share" and one.a is not None and one.b is not None:
        points = round(100 * (one.b - one.a), 1)
        sign = "+" if points > 0 else "−" if points < 0 else ""
        difference = f"{sign}{abs(points):g} points"
    texts = value_text(one, 0), value_text(one, 1)
    return {"name": one.name, "title": one.title, "texts": texts, "change": difference}


def _place(request: HttpRequest, found: Comparison) -> int | None:
    """The place of the row that the URL names, by a step of one side."""
    typed = request.GET.get("step", "")
    if not typed.isascii() or not typed.isdecimal() or len(typed) > 9:
        return None
    side = "b" if request.GET.get("side") == "b" else "a"
    return next((at for at, row in enumerate(found.rows) if getattr(row, side) == int(typed)), None)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _compared(request: HttpRequest, a: Session, b: Session) -> Comparison:
    return compared(a, b, request.GET.get("run", ""), request.GET.get("with_run", ""))


def _side(found: Comparison, at: Literal[0, 1]) -> dict[str, str]:
    """A run as the page names it, and where the replay shows it."""
    assert found.runs is not None
    run = found.runs[at]
    named = str(run.policy_version) if run.policy_version else ""
    return {
        "side": "AB"[at],
        "name": run.get_origin_display() if run.origin != Run.Origin.SIMULATED else named,
        "about": "simulated" if run.origin == Run.Origin.SIMULATED else named,
        "url": step_url(found.a, found.a.step_count, run),
    }


@require_GET
def comparison_page(request: HttpRequest, session_id: UUID, other_id: UUID) -> HttpResponse:
    """Show two sessions side by side, or two runs of one: verdict, figures, both timelines, and
    their aligned steps."""
    a, b = session_of(request, session_id), session_of(request, other_id)
    context: dict[str, Any] = {"section": "sessions", "team": a.team, "a": a, "b": b}
    context["sides"] = (("A", a, str(a)), ("B", b, str(b)))
    try:
        found = _compared(request, a, b)
    except (TooManySteps, MissingBlob, DamagedBlob) as error:
        return render(request, "replay/comparison.html", context | {"problem": str(error)})
    place = _place(request, found)
    groups = _groups(found, place)
    start = _number(request.GET.get("from", ""))
    if place is not None and "from" not in request.GET:
        at = next(at for at, group in enumerate(groups) if group.start <= place < group.end)
        start = at - at % GROUPS
    shown = groups[start : start + GROUPS]
    here = found.rows[place] if place is not None else None
    known = [one for one in found.figures if one.a is not None or one.b is not None]
    if found.runs:
        context["runs"] = [_side(found, at) for at in (0, 1)]
    pictures = pictures_of(found)
    rows_url = _address(found, "compare_rows")
    swapped = replace(found, a=b, b=a, runs=found.runs and found.runs[::-1])
    return render(request, "replay/comparison.html", context | {
        "found": found,
        "verdict": comparison_verdict(found),
        "figures": [_figure(one) for one in known],
        "unknown": [one.title for one in found.figures if one not in known],
        "pictures": pictures,
        "kinds": kinds_of(pictures),
        "height": HEIGHT,
        "steps": max(a.step_count, b.step_count),
        "groups": [(group, list(_rows(found, group.rows[:1], here))) for group in shown],
        "first": start + 1,
        "last": start + len(shown),
        "total": len(groups),
        "earlier_url": _address(found, **{"from": max(start - GROUPS, 0)}) if start else "",
        "later_url": _address(found, **{"from": start + GROUPS})
        if groups[start + GROUPS :]
        else "",
        "rows_url": f"{rows_url}{'&' if '?' in rows_url else '?'}",
        "swapped_url": _address(swapped),
    })  # fmt: skip


@require_GET
def comparison_rows(request: HttpRequest, session_id: UUID, other_id: UUID) -> HttpResponse:
    """Show the rows of one folded line."""
    found = _compared(request, session_of(request, session_id), session_of(request, other_id))
    start, end = (_number(request.GET.get(name, "")) for name in ("since", "until"))
    rows = _rows(found, found.rows[start : min(end, start + UNFOLDED)], None)
    context = {"since": start, "rows": list(rows), "left": max(end - start - UNFOLDED, 0)}
    return render(request, "replay/comparison_rows.html", context)


PAGES = (
    Page(
        route="compare/<uuid:session_id>..<uuid:other_id>/",
        query=("step", "side", "from", "run", "with_run"),
        view=comparison_page,
        name="compare",
    ),
    Page(
        route="compare/<uuid:session_id>..<uuid:other_id>/rows/",
        query=("since", "until", "run", "with_run"),
        view=comparison_rows,
        name="compare_rows",
    ),
)
