"""Causes of cache breaks in a team's sessions, and sessions near their window limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import SLICE, slice_of
from sessions.models.dashboard.day_totals import Range, kept, kept_lists
from sessions.models.dashboard.matching import NEAR_LIMIT, REAL_RUNS
from sessions.models.dashboard.slices import Split
from sessions.models.record import tail
from sessions.models.record.demo_data import counts
from sessions.models.record.revisions import Run
from sessions.models.record.sessions import SORT_KEYS, Session
from sessions.models.web.happened import StatementIn, happened_in
from sessions.models.web.periods import Period
from sessions.models.web.statements import Given, StatementAmong, given_uuid

COSTLIEST = 200
"""Most sessions to scan for cache breaks; scanning all would be too slow for a page."""

NEAREST = 8

Key = tuple[str, bool]
"""A cause of cache breaks, and whether they are avoidable."""


def _costliest_of(team: Team, period: Period, split: Split) -> list[UUID]:
    ids = _ranked(team, period, "costliest", COSTLIEST)
    if not split:
        return ids
    return [pk for pk, *one in _SLICES.rows(ids) if split.matches(slice_of(*one))]


@dataclass(frozen=True, slots=True)
class WorstBreak:
    """One cache break: its session and card (`cause_card`)."""

    session: Session
    card: dict[str, Any]


def worst_breaks(
    team: Team, period: Period, split: Split, cause: str, avoidable: bool | None, most: int
) -> list[WorstBreak]:
    """The most expensive breaks of the sessions that paid most for breaks; of one cause, unless it
    is empty, and only the avoidable or the other ones, unless that is None."""
    cards = [
        (card["cost_microusd"] or 0, card["tokens"], pk, card)
        for pk, card in _cards(_costliest_of(team, period, split))
        if cause in ("", card["kind"]) and avoidable in (None, card["avoidable"])
    ]
    found = nlargest(most, cards, key=lambda one: (*one[:2], one[2].hex, -one[3]["step"]))
    titled = {row.pk: row for row in _TITLES.rows([pk for _, _, pk, _ in found])}
    return [WorstBreak(titled[pk], card) for _, _, pk, card in found if pk in titled]


def worst_of_causes(team: Team, period: Period, split: Split) -> dict[Key, WorstBreak]:
    """The most expensive break of each cause, avoidable or not, of the sessions that paid most for
    breaks."""
    found: dict[Key, tuple[tuple[int, int, str, int], UUID, dict[str, Any]]] = {}
    for pk, card in _cards(_costliest_of(team, period, split)):
        size = (card["cost_microusd"] or 0, card["tokens"], pk.hex, -card["step"])
        key = card["kind"], card["avoidable"]
        if key not in found or size > found[key][0]:
            found[key] = size, pk, card
    titled = {row.pk: row for row in _TITLES.rows([pk for _, pk, _ in found.values()])}
    return {
        key: WorstBreak(titled[pk], card) for key, (_, pk, card) in found.items() if pk in titled
    }


_SLICES = StatementAmong(
    lambda ids: Session.objects.filter(pk__in=ids).values_list("pk", *SLICE), given_uuid
)

_TITLES = StatementAmong(
    lambda ids: Session.objects.filter(pk__in=ids).only("title", "external_id", "step_count"),
    given_uuid,
)


def ranked(pk: UUID, *numbers: int) -> str:
    """A session in a text that sorts by numbers from -1 on: a day has many, and texts are cheap."""
    return "".join(f"{number + 1:018}" for number in numbers) + pk.hex


def costliest_in(team: Team, ranges: Sequence[Range]) -> list[str]:
    """The sessions of these times that paid most for cache breaks: what they paid again, and in
    all, in micro-dollars (-1 if unknown)."""
    rows = _COSTLIEST.rows(ranges, team=team.pk)
    return [ranked(pk, again, cost) for again, cost, pk in rows]


def _costliest(times: Sequence[tuple[Given, Given]]) -> QuerySet[Any, Any]:
    team = given_uuid("team")
    rows = Session.objects.filter(happened_in(times), counts(team), team_id=team, break_count__gt=0)
    again = F("assessment__avoidable_microusd") + F("assessment__unexplained_microusd")
    rows = rows.annotate(again=Coalesce(again, -1), cost=Coalesce("cost_microusd", -1))
    listed = rows.order_by("-again", "-cost", "-pk").values_list("again", "cost", "pk")
    return listed[:COSTLIEST]


def fullest_in(team: Team, ranges: Sequence[Range]) -> list[str]:
    """The sessions of these times that came nearest to their window limit, and how near, in
    millionths."""
    return [ranked(pk, fill) for fill, pk in _FULLEST.rows(ranges, team=team.pk)]


def _fullest(times: Sequence[tuple[Given, Given]]) -> QuerySet[Any, Any]:
    near = F("window") * NEAR_LIMIT
    team = given_uuid("team")
    rows = Session.objects.filter(
        happened_in(times), counts(team), team_id=team, window__gt=0, peak_tokens__gte=near
    )
    listed = rows.annotate(fill=SORT_KEYS["peak"]).order_by("-fill", "-pk")
    return listed.values_list("fill", "pk")[:NEAREST]


_COSTLIEST, _FULLEST = StatementIn(_costliest), StatementIn(_fullest)
_LISTS = {"costliest": costliest_in, "fullest": fullest_in}


def _ranked(team: Team, period: Period, name: str, most: int) -> list[UUID]:
    """The first sessions of a period, from what is kept of its days and from the rest."""
    found = kept(team, [(period.since, period.until)])
    lines = kept_lists(team, found, name) + _LISTS[name](team, found.but_days)
    return [UUID(line[-32:]) for line in nlargest(most, lines)]


def _cards(ids: Sequence[UUID]) -> Iterable[tuple[UUID, dict[str, Any]]]:
    """Cache breaks of each session, from its managed run if it has one, else the recorded one."""
    seen: dict[UUID, tail.StoredFigures] = {}
    for pk, origin, *figures in _FIGURES.rows(ids):
        if pk not in seen or origin == Run.Origin.MANAGED:
            seen[pk] = tail.StoredFigures(*figures)
    for pk, figures in seen.items():
        for card in tail.causes(figures):
            yield pk, card


_FIGURES = StatementAmong(
    lambda ids: Run.objects.filter(session__id__in=ids, origin__in=REAL_RUNS).values_list(
        "session", "origin", *tail.STORED
    ),
    given_uuid,
)


def nearest_limit(team: Team, period: Period) -> list[Session]:
    """Sessions that came near their window limit, nearest first."""
    ids = _ranked(team, period, "fullest", NEAREST)
    found = {row.pk: row for row in _NEAREST.rows(ids)}
    return [found[pk] for pk in ids if pk in found]


_NEAREST = StatementAmong(
    lambda ids: Session.objects.filter(pk__in=ids).only(
        *("title", "external_id", "peak_tokens", "peak_measured", "window", "model", "agent"),
        *("break_count", "error_count", "compaction_count", "outcome", "step_count"),
    ),
    given_uuid,
)
