"""The contexts of two sessions, or of two runs, over their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.context.blocks import KINDS
from compaction.context.composition import by_step, places, totals
from sessions.actions.record.measured import SPARKLINE_COLUMNS
from sessions.actions.replay.comparisons import Comparison
from sessions.models import Session
from sessions.models.record.delta import placed_columns
from sessions.views.web.sparklines import Sparkline, sparkline


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


def pictures_of(found: Comparison) -> list[ContextPicture]:
    """Draw both sides on one scale."""
    rest = found.rows[found.parting :] if found.parting is not None else ()
    longest = max(found.a.step_count, found.b.step_count, 1)
    peaks = [_drawn_peak(session) for session in (found.a, found.b)]
    if found.runs:
        return _pictures_of_runs(found)
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


def _pictures_of_runs(found: Comparison) -> list[ContextPicture]:
    session, runs = found.a, found.runs or ()
    tables = [by_step(placed_columns(session, run), max(session.step_count, 1)) for run in runs]
    sizes = [[session.scaled(one) for one in totals(table)] for table in tables]
    hidden = [session.hidden_tokens + run.figures.get("added_tokens", 0) for run in runs]
    peaks = [extra + max(row, default=0) for extra, row in zip(hidden, sizes, strict=True)]
    step = None if found.parting is None else found.parting + 1
    parts = None if step is None else round(100 * (step - 0.5) / max(session.step_count, 1), 2)
    made = []
    for at, side in enumerate("AB"):
        fullest = sizes[at].index(max(sizes[at]))
        columns = [
            [session.scaled(kind[place]) for kind in tables[at]]
            for place in places(len(sizes[at]), SPARKLINE_COLUMNS, fullest)
        ]
        drawn = sparkline(columns, hidden[at], None, session.step_count, peaks[1 - at])
        made.append(ContextPicture(side, side, drawn, 100, parts, peaks[at]))
    return made


def _drawn_peak(session: Session) -> int:
    return session.hidden_tokens + max((sum(column) for column in session.sparkline), default=0)


def kinds_of(pictures: Sequence[ContextPicture]) -> list[str]:
    """The kinds of blocks that they show."""
    drawn = {kind for picture in pictures for kind, _ in picture.drawn.paths}
    return [kind for kind in KINDS if kind in drawn]
