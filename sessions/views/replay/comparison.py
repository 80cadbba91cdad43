"""The comparison of two sessions side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from compaction.context.align import AlignedOp, AlignedStep
from compaction.context.blocks import KINDS
from sessions.access import session_of
from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import (
    ComparedFigure,
    ComparedStep,
    Comparison,
    TooManySteps,
    compare,
    value_text,
)
from sessions.figures import change, signed
from sessions.models import Session
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import MissingBlob
from sessions.views.web.pages import Page
from sessions.views.web.places import step_url
from sessions.views.web.sparklines import HEIGHT, Sparkline, sparkline

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


@dataclass(frozen=True, slots=True)
class AlignedGroup:
    """Rows from place `start` on: one, or several the same."""

    start: int
    rows: Sequence[AlignedStep]

    @property
    def end(self) -> int:
        """The place after its last row."""
        return self.start + len(self.rows)

    @property
    def named(self) -> str:
        """What a folded line says of its rows."""
        first, last = self.rows[0], self.rows[-1]
        named = f"{len(self.rows):,} steps the same: {first.a}–{last.a} of A"
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
    cells: tuple[SideCell | None, SideCell | None]
    url: str
    here: bool

    @property
    def label(self) -> str:
        """What it is, between both sides."""
        return LABELS[self.op]


@dataclass(frozen=True, slots=True)
class ContextPicture:
    """One session's contexts over its steps; `width` is the share of the axis that it takes, and
    `parts` where it parts, in percent of the axis."""

    side: str
    name: str
    drawn: Sparkline
    width: float
    parts: float | None
    peak: int


def _address(found: Comparison) -> str:
    return reverse("compare", args=[found.a.pk, found.b.pk])


def _groups(found: Comparison, place: int | None) -> list[AlignedGroup]:
    """The rows in order, those that are the same in a row together, except around `place`."""
    made: list[AlignedGroup] = []
    for same, run in groupby(enumerate(found.rows), lambda row: row[1].op == "same"):
        rows = list(run)
        start, end = rows[0][0], rows[-1][0] + 1
        if same and len(rows) >= FOLDED and (place is None or not start <= place < end):
            made.append(AlignedGroup(start, [row for _, row in rows]))
        else:
            made += [AlignedGroup(at, [row]) for at, row in rows]
    return made


def _rows(
    found: Comparison, rows: Sequence[AlignedStep], here: AlignedStep | None
) -> Iterator[Any]:
    address = _address(found)

    def cell(side: Literal["a", "b"], step: int | None) -> SideCell | None:
        if step is None:
            return None
        session, steps = (found.a, found.steps_a) if side == "a" else (found.b, found.steps_b)
        return SideCell(side, steps[step], step_url(session, step))

    for row in rows:
        asked = f"step={row.b}&side=b" if row.a is None else f"step={row.a}"
        url = f"{address}?{asked}#here"
        yield AlignedRow(row.op, (cell("a", row.a), cell("b", row.b)), url, row is here)


def _pictures(found: Comparison) -> list[ContextPicture]:
    rest = found.rows[found.parting :] if found.parting is not None else ()
    longest = max(found.a.step_count, found.b.step_count, 1)
    peaks = [_drawn_peak(session) for session in (found.a, found.b)]
    made = []
    for side, session, beside in (("A", found.a, peaks[1]), ("B", found.b, peaks[0])):
        steps = (row.a if side == "A" else row.b for row in rest)
        step = next((step for step in steps if step is not None), None)
        drawn = sparkline(
            session.sparkline, session.hidden_tokens, None, session.step_count, beside
        )
        width = round(100 * session.step_count / longest, 2)
        parts = None if step is None else round(100 * (step - 0.5) / longest, 2)
        made.append(ContextPicture(side, str(session), drawn, width, parts, session.peak_tokens))
    return made


def _drawn_peak(session: Session) -> int:
    return session.hidden_tokens + max((sum(column) for column in session.sparkline), default=0)


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


@require_GET
def comparison_page(request: HttpRequest, session_id: UUID, other_id: UUID) -> HttpResponse:
    """Show two sessions side by side: verdict, figures, both timelines, and their aligned steps."""
    a, b = session_of(request, session_id), session_of(request, other_id)
    context: dict[str, Any] = {"section": "sessions", "team": a.team, "a": a, "b": b}
    context["sides"] = (("A", a, str(a)), ("B", b, str(b)))
    try:
        found = compare(a, b)
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
    address = _address(found)
    pictures = _pictures(found)
    return render(request, "replay/comparison.html", context | {
        "found": found,
        "verdict": comparison_verdict(found),
        "figures": [_figure(one) for one in known],
        "unknown": [one.title for one in found.figures if one not in known],
        "pictures": pictures,
        "kinds": _kinds(pictures),
        "height": HEIGHT,
        "steps": max(a.step_count, b.step_count),
        "groups": [(group, list(_rows(found, group.rows[:1], here))) for group in shown],
        "first": start + 1,
        "last": start + len(shown),
        "total": len(groups),
        "earlier_url": f"{address}?from={max(start - GROUPS, 0)}" if start else "",
        "later_url": f"{address}?from={start + GROUPS}" if groups[start + GROUPS :] else "",
        "rows_url": reverse("compare_rows", args=[a.pk, b.pk]),
        "swapped_url": reverse("compare", args=[b.pk, a.pk]),
    })  # fmt: skip


def _kinds(pictures: Sequence[ContextPicture]) -> list[str]:
    drawn = {kind for picture in pictures for kind, _ in picture.drawn.paths}
    return [kind for kind in KINDS if kind in drawn]


@require_GET
def comparison_rows(request: HttpRequest, session_id: UUID, other_id: UUID) -> HttpResponse:
    """Show the rows of one folded line."""
    found = compare(session_of(request, session_id), session_of(request, other_id))
    start, end = (_number(request.GET.get(name, "")) for name in ("since", "until"))
    rows = _rows(found, found.rows[start : min(end, start + UNFOLDED)], None)
    context = {"since": start, "rows": list(rows), "left": max(end - start - UNFOLDED, 0)}
    return render(request, "replay/comparison_rows.html", context)


PAGES = (
    Page(
        route="compare/<uuid:session_id>..<uuid:other_id>/",
        query=("step", "side", "from"),
        view=comparison_page,
        name="compare",
    ),
    Page(
        route="compare/<uuid:session_id>..<uuid:other_id>/rows/",
        query=("since", "until"),
        view=comparison_rows,
        name="compare_rows",
    ),
)
