"""Keep the sums of days: add up the days whose sessions changed, when a page is opened."""

from __future__ import annotations

from collections.abc import Collection
from heapq import nlargest
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists, F, Q

from sessions.models import (
    Assessment,
    DayTotals,
    FactLedger,
    Review,
    ReviewItem,
    Session,
    Team,
)
from sessions.models.dashboard.added_up import Slice, add_up, add_up_slices, extents
from sessions.models.dashboard.day_totals import DUE, EXTENT, KeptSums, ranges_of, week
from sessions.models.dashboard.facets import Counted, added, facets_between
from sessions.models.dashboard.matching import compactions_managed
from sessions.models.dashboard.slices import merged, read_slices
from sessions.models.dashboard.troubles import COSTLIEST, NEAREST, costliest_in, fullest_in
from sessions.models.record.demo_data import has_real
from sessions.models.web.happened import happened
from sessions.models.web.periods import DAY, HOUR, WEEK, monday
from sessions.models.web.statements import Statement, given_uuid
from sessions.models.web.sums import Sums

AT_ONCE = 5_000
"""Sessions locked at once."""

WEEKS = 50
"""Weeks, and rows, per statement."""

TEXTS = ("sums", "hours", "facets", "slices", "fullest", "costliest")

LISTED = {"fullest": NEAREST, "costliest": COSTLIEST}
"""Lines of a week in each list."""


def keep_totals(team: Team) -> None:
    """Add up the team's days whose sessions changed since. Sessions that another transaction is
    changing stay due: readers add their days up themselves."""
    while _keep_some(team):
        pass


def _keep_some(team: Team) -> bool:
    if not _ANY_DUE.rows(team=team.pk):
        return False
    due = Session.objects.for_team(team).filter(DUE)
    with transaction.atomic():
        # One at a time: of two that add up a day, neither would see what the other marks.
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        rows = due.annotate(at=happened() / DAY).order_by("at", "pk")
        locked = rows.select_for_update(skip_locked=True, of=("self",), no_key=True)
        found = list(locked.values_list("pk", "at", "tally_day")[:AT_ONCE])
        _keep(team, sorted({day for _, *days in found for day in days if day is not None}))
        ids = [pk for pk, *_ in found]
        Session.objects.filter(pk__in=ids).update(
            tallied_version=F("version"),
            tally_day=happened() / DAY,
            tallied_compacted=Exists(compactions_managed()),
        )
    return len(found) == AT_ONCE


_ANY_DUE = Statement(
    lambda: Session.objects.filter(DUE, team_id=given_uuid("team")).values_list("pk")[:1]
)


def _keep(team: Team, days: list[int]) -> None:
    hours = add_up(team, ranges_of(days), 0, HOUR)
    sliced: dict[int, list[tuple[Slice, Sums]]] = {day: [] for day in days}
    for (day, one), sums in add_up_slices(team, ranges_of(days), 0, DAY).items():
        sliced[day].append((one, sums))
    ends = {day: row for day, *row in extents(team, ranges_of(days))}
    rows = []
    for day in days:
        whole = ranges_of([day])
        its = {hour: hours[at] for hour in range(24) if (at := day * 24 + hour) in hours}
        together = Sums()
        for sums in its.values():
            together.add(sums)
        texts = {
            "sums": _text(KeptSums.of_sums(together)),
            "hours": _text({hour: KeptSums.of_sums(sums) for hour, sums in its.items()}),
            "facets": _text(facets_between(team, whole)),
            "slices": _text(merged(sliced[day])),
            "fullest": "\n".join(fullest_in(team, whole)),
            "costliest": "\n".join(costliest_in(team, whole)),
        }
        extent = dict(zip(EXTENT, ends.get(day, (0, 0, 0, None)), strict=True))
        rows.append(DayTotals(team=team, day=day, **texts, **extent))
    _store(rows)
    # Days count from the epoch, in the middle of a week.
    _keep_weeks(team, sorted({first for day in days if (first := monday(day)) >= 0}))


def _keep_weeks(team: Team, mondays: list[int]) -> None:
    of: dict[int, list[DayTotals]] = {first: [] for first in mondays}
    for begin in range(0, len(mondays), WEEKS):
        known = [day for first in mondays[begin : begin + WEEKS] for day in week(first)]
        for row in DayTotals.objects.filter(team=team, days=1, day__in=known).order_by("day"):
            of[monday(row.day)].append(row)
    _store([_week(team, first, rows) for first, rows in of.items()])


def _week(team: Team, first: int, rows: list[DayTotals]) -> DayTotals:
    together = Sums()
    for row in rows:
        msgspec.json.decode(row.sums, type=KeptSums).add_to(together)
    facets = [msgspec.json.decode(row.facets, type=Counted) for row in rows]
    texts = {"sums": _text(KeptSums.of_sums(together)), "facets": _text(added(facets))}
    texts["slices"] = _text(merged(one for row in rows for one in read_slices(row.slices)))
    for name, most in LISTED.items():
        lines = (line for row in rows for line in getattr(row, name).split())
        texts[name] = "\n".join(nlargest(most, lines))
    return DayTotals(team=team, day=first, days=WEEK, **texts)


def _store(rows: list[DayTotals]) -> None:
    DayTotals.objects.bulk_create(
        rows,
        batch_size=WEEKS,
        update_conflicts=True,
        unique_fields=["team", "days", "day"],
        update_fields=[*EXTENT, *TEXTS],
    )


def _text(one: Any) -> str:
    return msgspec.json.encode(one).decode()


def sums_changed(
    instance: Session | Assessment | FactLedger | Review | ReviewItem,
    update_fields: Collection[str] | None = None,
    *,
    created: bool = False,
    **_: Any,
) -> None:
    """Mark a session as due when it or a row beside it was saved; with a team's first real session,
    those of the demo, which count no longer.

    A change that raises the session's version says so itself.
    """
    if isinstance(instance, Session):
        if created and not instance.demo and not has_real(instance.team_id, but=instance.pk):
            _mark_demo(instance)
        if update_fields and "version" in update_fields:
            return
        its = Q(pk=instance.pk)
    elif isinstance(instance, Assessment):
        its = Q(pk=instance.session_id)
    elif isinstance(instance, Review):
        its = Q(runs__revisions__review_item=instance.item_id)
    else:
        its = Q(runs__revisions=instance.revision_id)
    found = Session.objects.filter(its).values("pk")
    Session.objects.filter(pk__in=found, tallied_version__gte=0).update(tallied_version=-1)


def _mark_demo(instance: Session) -> None:
    """Mark the demo sessions of a session's team as due: whether they count has changed."""
    demo = Session.objects.filter(team=instance.team_id, demo=True, tallied_version__gte=0)
    demo.update(tallied_version=-1)


def forget_day(instance: Session, **_: Any) -> None:
    """Mark the other sessions of a deleted session's day as due; after a team's last real session,
    those of the demo."""
    if not instance.demo and not has_real(instance.team_id):
        _mark_demo(instance)
    if instance.tally_day is None:
        return
    day = instance.tally_day
    its = Q(days=1, day=day) | Q(days=WEEK, day=monday(day))
    DayTotals.objects.filter(its, team=instance.team_id).delete()
    same = Session.objects.filter(team=instance.team_id, tally_day=day)
    same.update(tallied_version=-1)
