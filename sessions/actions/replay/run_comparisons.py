"""Two runs of one session compared: the same steps, seen with two contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from compaction.context.align import AlignedStep
from sessions.actions.assessments.assessments import ENGINE
from sessions.actions.assessments.lacked import may_lack, recall_under
from sessions.actions.replay.comparisons import (
    ComparedFigure,
    Comparison,
    FigureUnit,
    check_size,
    steps_of,
)
from sessions.actions.reviews.losses import seen_run
from sessions.models import Assessment, Run
from sessions.models.record import tail
from sessions.models.record.delta import placed_columns

MOST_READ = 3_000
"""Most steps of a session whose texts are read for its recall while a page waits."""

Column = Sequence[int | None]
Columns = Mapping[str, Column]


def compare_runs(a: Run, b: Run) -> Comparison:
    """Compare two runs of a session: figures, and the steps at which their contexts differ.

    Raises TooManySteps, MissingBlob, DamagedBlob.
    """
    session = a.session
    check_size(session)
    apart = _apart(a, b, session.step_count)
    rows = tuple(
        AlignedStep("changed" if apart[step - 1] else "same", step, step)
        for step in range(1, session.step_count + 1)
    )
    (_, steps_a), (_, steps_b) = steps_of(session, a), steps_of(session, b)
    figures = tuple(_figures(a, b))
    return Comparison(session, session, figures, steps_a, steps_b, rows, True, (a, b))


def _apart(a: Run, b: Run, steps: int) -> list[bool]:
    """Whether the contexts of a step hold other blocks, for each step."""
    changes = [0] * (steps + 2)
    sides = _intervals(a, steps), _intervals(b, steps)
    for block in sides[0].keys() | sides[1].keys():
        of_a, of_b = (side.get(block, frozenset()) for side in sides)
        bounds = sorted({bound for interval in of_a ^ of_b for bound in interval})
        for start, end in pairwise(bounds):
            if _is_in(of_a, start) != _is_in(of_b, start):
                changes[start] += 1
                changes[end] -= 1
    return [count > 0 for count in accumulate(changes[1 : steps + 1])]


def _is_in(intervals: Iterable[tuple[int, int]], step: int) -> bool:
    return any(start <= step < end for start, end in intervals)


def _intervals(run: Run, steps: int) -> dict[tuple[int, ...], frozenset[tuple[int, int]]]:
    """The steps at which each block is in context, as [from, to); a replacement is another block
    than its original."""
    columns = placed_columns(run.session, run)
    found: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    names = ("message", "index", "position", "flags", "tokens", "from", "to")
    for *block, start, end in zip(*(columns[name] for name in names), strict=True):
        begin, stop = max(start, 1), min(end or steps + 1, steps + 1)
        if begin < stop:
            found.setdefault(tuple(block), set()).add((begin, stop))
    return {block: frozenset(intervals) for block, intervals in found.items()}


def _figures(a: Run, b: Run) -> Iterable[ComparedFigure]:
    sums = [_usage(run) for run in (a, b)]
    rough = a.origin == Run.Origin.SIMULATED, b.origin == Run.Origin.SIMULATED

    def total(name: str, title: str, unit: FigureUnit = "tokens") -> ComparedFigure:
        of_a, of_b = (_total(columns.get(name, [])) for columns in sums)
        least = _is_partial(sums[0].get(name, [])), _is_partial(sums[1].get(name, []))
        return ComparedFigure(name, title, unit, of_a, of_b, rough, least)

    peaks = [max(filter(None, columns.get("prompt", ())), default=None) for columns in sums]
    steps = a.session.step_count
    yield total("cost", "Cost", "microusd")
    yield ComparedFigure(
        "recall", "Needed facts in context", "share", *_recalls(a, b), (True, True)
    )
    yield ComparedFigure("steps", "Steps", "count", steps, steps)
    yield ComparedFigure("revisions", "Revisions", "count", a.head, b.head)
    yield ComparedFigure("peak", "Largest prompt", "tokens", peaks[0], peaks[1], rough)
    yield total("uncached", "Uncached tokens")
    yield total("read", "Cache read tokens")
    yield total("write", "Cache write tokens")


def _usage(run: Run) -> Columns:
    """Usage by step; none of a recorded run whose place a managed one took: no model saw it."""
    seen = seen_run(run.session)
    if run.origin == Run.Origin.RECORDED and seen is not None and seen.pk != run.pk:
        return {}
    return tail.figures(tail.stored(run)).steps


def _total(column: Column) -> int | None:
    known = [one for one in column if one is not None]
    return sum(known) if known else None


def _is_partial(column: Column) -> bool:
    return None in column and any(one is not None for one in column)


class _Kept(NamedTuple):
    """How many facts were needed, and the share of them in context."""

    needs: int
    share: float


def _recalls(a: Run, b: Run) -> tuple[float | None, float | None]:
    """The share of needed facts that were in context, of both; None if unknown, or if none was
    needed."""
    of_a, of_b = _kept(a), _kept(b)
    if not any(one and one.needs for one in (of_a, of_b)):
        return None, None
    return of_a and of_a.share, of_b and of_b.share


def _kept(run: Run) -> _Kept | None:
    if run.origin == Run.Origin.SIMULATED:
        needs, share = (run.figures.get(name) for name in ("needs", "in_context"))
        return _Kept(needs, share) if needs is not None and share is not None else None
    if not may_lack(run):
        return _Kept(0, 1.0)  # not counted, but no text left its contexts
    session, seen = run.session, seen_run(run.session)
    if seen is not None and seen.pk == run.pk:  # an assessment is of what the model saw
        row = Assessment.objects.filter(session=session, engine__gte=ENGINE).first()
        if row is not None and row.needs and row.in_context is not None:
            return _Kept(row.needs, row.in_context / row.needs)
    if session.step_count > MOST_READ:
        return None
    found = recall_under(session, run)
    return _Kept(found.needs, found.in_context)
