"""Where a team's money and room went: what broke caches, and sessions near their limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, F, QuerySet
from django.db.models.functions import Cast

from compaction.cache.causes import is_avoidable
from sessions.models import tail
from sessions.models.matching import NEAR_LIMIT
from sessions.models.periods import Period, happened
from sessions.models.reviews import ReviewItem
from sessions.models.revisions import Run
from sessions.models.sessions import Session
from sessions.models.teams import Team
from sessions.models.tiles import REAL_RUNS

DEAREST = 200
"""Sessions whose cache breaks are looked at: reading them all would take too long for a page."""

NEAREST = 8


def inside(team: Team, period: Period) -> QuerySet[Session]:
    """The team's sessions of a period."""
    rows = Session.objects.for_team(team).annotate(happened=happened())
    return rows.filter(happened__gte=period.since, happened__lt=period.until)


def review_items(team: Team, period: Period) -> QuerySet[ReviewItem]:
    """What waits for reviews, or has them, of the sessions of a period."""
    rows = ReviewItem.objects.for_team(team)
    return rows.filter(revision__run__session__in=inside(team, period))


@dataclass(slots=True)
class Cause:
    """What broke caches for one reason: how often, tokens paid again, micro-dollars (None where no
    price is known), in which sessions, whether somebody can avoid it, and the dearest one: session,
    step, what it says, what to do about it."""

    kind: str
    breaks: int = 0
    tokens: int = 0
    cost: int | None = None
    sessions: set[UUID] = field(default_factory=set)
    dearest: tuple[Session, int] | None = None
    title: str = ""
    advice: str = ""
    avoidable: bool = False
    _most: tuple[int, int] = (-1, -1)

    def add(self, session: Session, card: dict[str, Any]) -> None:
        """Take in one break, as `cause_card` describes it."""
        self.breaks += 1
        self.tokens += card["tokens"]
        self.sessions.add(session.pk)
        cost = card["cost_microusd"]
        if cost is not None:
            self.cost = (self.cost or 0) + cost
        size = (cost or 0, card["tokens"])
        if size > self._most:
            self._most = size
            self.dearest = session, card["step"]
            self.title, self.advice = card["title"], card["advice"]


@dataclass(frozen=True, slots=True)
class Breaks:
    """Causes, the dearest first, and how many sessions were looked at for them."""

    causes: list[Cause]
    looked_at: int


def breaks(team: Team, period: Period) -> Breaks:
    """What broke caches in the sessions that paid most for it, in two queries."""
    rows = inside(team, period).filter(break_count__gt=0)
    again = F("assessment__avoidable_microusd") + F("assessment__unexplained_microusd")
    ranked = rows.order_by(again.desc(nulls_last=True), "-cost_microusd")
    found = {row.pk: row for row in ranked.only("title", "external_id", "step_count")[:DEAREST]}
    by_kind: dict[str, Cause] = {}
    for session, card in _cards(found):
        kind = card["kind"]
        cause = by_kind.setdefault(kind, Cause(kind, avoidable=is_avoidable(kind)))
        cause.add(session, card)
    causes = sorted(by_kind.values(), key=lambda one: (-(one.cost or 0), -one.tokens, one.kind))
    return Breaks(causes, len(found))


def _cards(found: dict[UUID, Session]) -> Iterable[tuple[Session, dict[str, Any]]]:
    """Breaks of each session, from the run that its model saw."""
    rows = Run.objects.filter(session__in=list(found), origin__in=REAL_RUNS)
    seen: dict[UUID, Run] = {}
    for run in rows.only("session", "origin", *tail.Stored._fields):
        if run.session_id not in seen or run.origin == Run.Origin.SERVED:
            seen[run.session_id] = run
    for pk, run in seen.items():
        for card in tail.causes(tail.stored_with(run)):
            yield found[pk], card


def nearest_limit(team: Team, period: Period) -> list[Session]:
    """Sessions that came near their limit, nearest first."""
    rows = inside(team, period).filter(window__gt=0, peak_tokens__gte=F("window") * NEAR_LIMIT)
    filled = Cast(F("peak_tokens"), BigIntegerField()) * 1_000_000 / F("window")
    fields = ("title", "external_id", "peak_tokens", "peak_measured", "window", "model", "agent")
    more = ("break_count", "error_count", "compaction_count", "outcome", "step_count")
    return list(
        rows.annotate(filled=filled).order_by("-filled", "pk").only(*fields, *more)[:NEAREST]
    )
