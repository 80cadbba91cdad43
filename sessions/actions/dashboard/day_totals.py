"""Keep the sums of days: add up the days whose sessions changed, when a page is opened."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists, F, Max, Min, Q

from sessions.models import (
    Assessment,
    DayTotals,
    FactLedger,
    Review,
    ReviewItem,
    Session,
    Team,
)
from sessions.models.dashboard.added_up import add_up
from sessions.models.dashboard.day_totals import DUE, KeptSums, ranges_of
from sessions.models.dashboard.facets import facets_between
from sessions.models.dashboard.matching import compactions_managed
from sessions.models.dashboard.troubles import costliest_in, fullest_in
from sessions.models.web.periods import DAY, HOUR, happened, happened_in
from sessions.models.web.sums import Sums

AT_ONCE = 5_000
"""Sessions locked at once."""


def keep_totals(team: Team) -> None:
    """Add up the team's days whose sessions changed since. Sessions that another transaction is
    changing stay due: readers add their days up themselves."""
    while _keep_some(team):
        pass


def _keep_some(team: Team) -> bool:
    due = Session.objects.for_team(team).filter(DUE)
    if not due.exists():
        return False
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


def _keep(team: Team, days: list[int]) -> None:
    hours = add_up(team, ranges_of(days), F("happened") / HOUR)
    for day in days:
        whole = ranges_of([day])
        its = {hour: hours[at] for hour in range(24) if (at := day * 24 + hour) in hours}
        together = Sums()
        for sums in its.values():
            together.add(sums)
        rows = Session.objects.for_team(team).filter(happened_in(whole))
        ends = rows.aggregate(first=Min(happened()), last=Max(happened()))
        kept = {
            "sums": _kept(together, ends["first"] or 0, ends["last"] or 0),
            "hours": {hour: _kept(sums) for hour, sums in its.items()},
            "facets": facets_between(team, whole),
        }
        texts = {name: msgspec.json.encode(one).decode() for name, one in kept.items()}
        texts["fullest"] = "\n".join(fullest_in(team, whole))
        texts["costliest"] = "\n".join(costliest_in(team, whole))
        DayTotals.objects.update_or_create(team=team, day=day, defaults=texts)


def _kept(sums: Sums, first: int = 0, last: int = 0) -> KeptSums:
    of = {name: many for name, many in sums.of.items() if many}
    return KeptSums(of, first, last, dict(sums.peaks), dict(sums.steps))


def sums_changed(
    instance: Session | Assessment | FactLedger | Review | ReviewItem,
    update_fields: Collection[str] | None = None,
    **_: Any,
) -> None:
    """Mark a session as due when it or a row beside it was saved.

    A change that raises the session's version says so itself.
    """
    if isinstance(instance, Session):
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


def forget_day(instance: Session, **_: Any) -> None:
    """Mark the other sessions of a deleted session's day as due."""
    if instance.tally_day is None:
        return
    DayTotals.objects.filter(team=instance.team_id, day=instance.tally_day).delete()
    same = Session.objects.filter(team=instance.team_id, tally_day=instance.tally_day)
    same.update(tallied_version=-1)
