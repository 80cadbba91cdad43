"""Causes of cache breaks in a team's sessions, and sessions near their window limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from compaction.cache.causes import is_avoidable
from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import SLICE, slice_of
from sessions.models.dashboard.day_totals import Range, kept, kept_lists
from sessions.models.dashboard.matching import NEAR_LIMIT, REAL_RUNS
from sessions.models.dashboard.slices import EVERYTHING, Split
from sessions.models.record import tail
from sessions.models.record.demo_data import counts
from sessions.models.record.revisions import Run
from sessions.models.record.sessions import SORT_KEYS, Session
from sessions.models.web.periods import Period, StatementIn, happened_in
from sessions.models.web.statements import Given, StatementAmong, given_uuid

COSTLIEST = 200
"""Most sessions to scan for cache breaks; scanning all would be too slow for a page."""

NEAREST = 8


@dataclass(slots=True)
class Cause:
    """Cache breaks with one cause: their number, tokens written again, micro-dollars (None if no
    price is known), sessions, whether they are avoidable, and the most expensive break: its
    session, step, title and advice. `formats` has number and cost by log format (`api`: reported
    while running)."""

    kind: str
    breaks: int = 0
    tokens: int = 0
    cost: int | None = None
    sessions: set[UUID] = field(default_factory=set)
    costliest: tuple[Session, int] | None = None
    title: str = ""
    advice: str = ""
    avoidable: bool = False
    formats: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    _most: tuple[int, int] = (-1, -1)
    _place: tuple[UUID, int] | None = None

    def add(self, session: UUID, source: str, card: dict[str, Any]) -> None:
        """Add one break of a session from a format, as described by `cause_card`."""
        self.breaks += 1
        self.tokens += card["tokens"]
        self.sessions.add(session)
        cost = card["cost_microusd"]
        if cost is not None:
            self.cost = (self.cost or 0) + cost
        breaks, paid = self.formats.get(source, (0, None))
        paid = paid if cost is None else (paid or 0) + cost
        self.formats[source] = breaks + 1, paid
        size = (cost or 0, card["tokens"])
        if size > self._most:
            self._most = size
            self._place = session, card["step"]
            self.title, self.advice = card["title"], card["advice"]

    def look_up(self, sessions: Mapping[UUID, Session]) -> None:
        """Set the session of the most expensive break."""
        if self._place is not None and self._place[0] in sessions:
            self.costliest = sessions[self._place[0]], self._place[1]


@dataclass(frozen=True, slots=True)
class Breaks:
    """Causes, most expensive first, and the number of sessions scanned for them."""

    causes: list[Cause]
    looked_at: int


def breaks(
    team: Team, period: Period, split: Split = EVERYTHING, *, keep_ttl: bool = False
) -> Breaks:
    """Find the causes of cache breaks in the sessions that paid most for them; of these, in the
    ones of a split. `keep_ttl`: an expired TTL is not avoidable, as a longer one would cost more.
    """
    ids = _costliest_of(team, period, split)
    by_kind: dict[str, Cause] = {}
    for session, source, card in _cards(ids):
        kind = card["kind"]
        can = is_avoidable(kind) and not (keep_ttl and kind == "ttl")
        cause = by_kind.setdefault(kind, Cause(kind, avoidable=can))
        cause.add(session, source, card)
    places = [cause._place[0] for cause in by_kind.values() if cause._place]
    found = {row.pk: row for row in _TITLES.rows(places)}
    for cause in by_kind.values():
        cause.look_up(found)
        cause.formats = dict(sorted(cause.formats.items(), key=lambda one: -(one[1][1] or 0)))
    causes = sorted(by_kind.values(), key=lambda one: (-(one.cost or 0), -one.tokens, one.kind))
    return Breaks(causes, len(ids))


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
    team: Team, period: Period, split: Split, cause: str, most: int
) -> list[WorstBreak]:
    """The most expensive breaks of the sessions that paid most for breaks; of one cause, unless it
    is empty."""
    cards = [
        (card["cost_microusd"] or 0, card["tokens"], pk, card)
        for pk, _, card in _cards(_costliest_of(team, period, split))
        if cause in ("", card["kind"])
    ]
    found = nlargest(most, cards, key=lambda one: (*one[:2], one[2].hex, -one[3]["step"]))
    titled = {row.pk: row for row in _TITLES.rows([pk for _, _, pk, _ in found])}
    return [WorstBreak(titled[pk], card) for _, _, pk, card in found if pk in titled]


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


def _cards(ids: Sequence[UUID]) -> Iterable[tuple[UUID, str, dict[str, Any]]]:
    """Cache breaks of each session, with its format, from its managed run if it has one, else the
    recorded one."""
    seen: dict[UUID, tuple[str, tail.StoredFigures]] = {}
    for pk, source, origin, *figures in _FIGURES.rows(ids):
        if pk not in seen or origin == Run.Origin.MANAGED:
            seen[pk] = source, tail.StoredFigures(*figures)
    for pk, (source, figures) in seen.items():
        for card in tail.causes(figures):
            yield pk, source, card


_FIGURES = StatementAmong(
    lambda ids: Run.objects.filter(session__id__in=ids, origin__in=REAL_RUNS).values_list(
        "session", "session__source", "origin", *tail.StoredFigures._fields
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
