"""Add up sessions by parts of the time in which they happened, from their rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.counted import CONDITIONS, SUMMED
from sessions.models.dashboard.matching import REAL_RUNS
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.reviews.assessments import FactLedger
from sessions.models.reviews.reviews import Review
from sessions.models.web.periods import happened, happened_in
from sessions.models.web.sums import Sums

Ranges = Sequence[tuple[int, int]]
"""Of [since, until) in ms since the epoch."""

Rows = Iterator[dict[str, int]]


def add_up(team: Team, ranges: Ranges, part: Combinable) -> dict[int, Sums]:
    """The sums of the team's sessions by part, in six queries however many sessions there are.

    `part` is a whole number made of `happened`.
    """
    found: dict[int, Sums] = defaultdict(Sums)
    if not ranges:
        return found
    for read in _sums, _compactions, _ledgers, _reviews:
        for row in read(team, ranges, part):
            found[row.pop("part")].of.update(row)
    sessions = inside(Session.objects.for_team(team), ranges, part).order_by()
    permille = Cast(F("peak_tokens"), BigIntegerField()) * 1000 / F("window")
    filled = sessions.filter(window__gt=0, peak_tokens__gt=0).annotate(permille=permille)
    for index, peak, many in filled.values_list("part", "permille").annotate(many=Count("*")):
        found[index].peaks[peak] += many
    stepped = sessions.filter(step_count__gt=0).values_list("part", "step_count")
    for index, steps, many in stepped.annotate(many=Count("*")):
        found[index].steps[steps] += many
    return found


def inside(rows: QuerySet[Any], ranges: Ranges, part: Combinable, path: str = "") -> QuerySet[Any]:
    """Rows whose session happened in these times, each annotated with its `part`. `path` leads from
    the row to its session, as in `happened`."""
    return (
        rows.filter(happened_in(ranges, path)).annotate(happened=happened(path)).annotate(part=part)
    )


def _sums(team: Team, ranges: Ranges, part: Combinable) -> Rows:
    rows = inside(Session.objects.for_team(team), ranges, part).order_by().values("part")
    # Grouping sorts the columns that it counts: a small one that is never null is quicker than ids.
    counts = {f"n_{name}": Count("step_count", filter=where) for name, where in CONDITIONS.items()}
    sums = {f"s_{name}": Sum(column) for name, column in SUMMED.items()}
    for row in rows.annotate(n_sessions=Count("*"), **counts, **sums):
        yield {name.removeprefix("n_").removeprefix("s_"): int(row[name] or 0) for name in row}


def _compactions(team: Team, ranges: Ranges, part: Combinable) -> Rows:
    made = Revision.objects.filter(
        run__session__team=team, run__origin=Run.Origin.MANAGED, edits__strategy="compact"
    )
    rows = inside(made, ranges, part, "run__session__").order_by().values("part")
    found = rows.annotate(
        managed=Count("pk", distinct=True),
        compacted_by_us=Count(
            "run__session", distinct=True, filter=Q(run__session__compaction_count=0)
        ),
    )
    for row in found:
        yield {name: int(row[name]) for name in row}


def _ledgers(team: Team, ranges: Ranges, part: Combinable) -> Rows:
    made = FactLedger.objects.filter(
        revision__run__session__team=team, revision__run__origin__in=REAL_RUNS
    )
    rows = inside(made, ranges, part, "revision__run__session__").order_by().values("part")
    scored = Q(score__isnull=False)
    sums = ("score", "kept", "retrievable", "lost", "unsupported")
    found = rows.annotate(
        ledgers_made=Count("pk"),
        ledgers=Count("pk", filter=scored),
        with_ledger=Count("revision__run__session", distinct=True),
        ledgered=Count("revision__run__session", distinct=True, filter=scored),
        **{f"s_{name}": Sum(name, filter=scored) for name in sums},
    )
    for row in found:
        yield {re.sub("^s_", "ledger_", name): int(row[name] or 0) for name in row}


def _reviews(team: Team, ranges: Ranges, part: Combinable) -> Rows:
    # By the session's team, like its time: then PostgreSQL starts from the few sessions.
    made = Review.objects.filter(
        item__revision__run__session__team=team,
        item__finished__isnull=False,
        submitted__isnull=False,
    )
    rows = inside(made, ranges, part, "item__revision__run__session__").order_by().values("part")
    verdicts = {
        f"review_{verdict}": Count("pk", filter=Q(verdict=verdict))
        for verdict in Review.Verdict.values
    }
    found = rows.annotate(reviewed=Count("item__revision__run__session", distinct=True), **verdicts)
    for row in found:
        yield {name: int(row[name]) for name in row}
