"""Filters, search and order of the session list, as in its URL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, QueryDict

from sessions.access import teams_of
from sessions.models import Session, Team
from sessions.models.dashboard.matching import (
    FACETS,
    FLAGS,
    blocks_with,
    compactions_managed,
    managed_by,
    matching,
)
from sessions.models.dashboard.tiles import COUNTED
from sessions.models.record import list_versions
from sessions.models.record.demo_data import listed
from sessions.models.record.list_versions import together
from sessions.models.record.sessions import SORT_KEYS
from sessions.models.web.happened import ended
from sessions.models.web.periods import read_time, written
from sessions.views.web.dates import Pairs, dates_of

QUERY_CHARS = 200

SORTS: dict[str, str] = {"newest": "Newest", "peak": "Peak", "cost": "Cost", "steps": "Steps"}
"""Labels of the orders, each by the key in SORT_KEYS."""


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """Filters from the query string; unknown values are ignored."""

    q: str = ""
    agent: str = ""
    model: str = ""
    source: str = ""
    flags: tuple[str, ...] = ()
    sort: str = "newest"
    parent: UUID | None = None
    since: int | None = None
    until: int | None = None
    arrived: int | None = None
    """Since when, in ms, the session is here, whenever it ran."""
    counted: str = ""
    policy: str = ""
    rollout: UUID | None = None
    demo: bool = False
    """Whether demo sessions are listed beside real ones."""
    dates: Pairs = ()
    """The range in the URL; `since` and `until` are then the times it covers."""

    @classmethod
    def of(cls, query: QueryDict) -> SessionFilters:
        """Parse the query string."""
        # PostgreSQL rejects NUL characters.
        dates, period, _ = dates_of(query)
        text = {name: query.get(name, "").replace("\x00", "")[:QUERY_CHARS] for name in FACETS}
        return cls(
            q=query.get("q", "").replace("\x00", "").strip()[:QUERY_CHARS],
            flags=tuple(flag for flag in FLAGS if flag in query.getlist("flag")),
            sort=query.get("sort", "") if query.get("sort") in SORTS else "newest",
            parent=_uuid(query.get("parent", "")),
            since=period.since if period else read_time(query.get("since", "")),
            until=period.until if period else read_time(query.get("until", "")),
            arrived=read_time(query.get("arrived", "")),
            dates=dates,
            counted=query.get("counted", "") if query.get("counted") in COUNTED else "",
            policy=query.get("policy", "").replace("\x00", "")[:QUERY_CHARS],
            rollout=_uuid(query.get("rollout", "")),
            demo=query.get("demo") == "1",
            **text,
        )

    @property
    def active(self) -> bool:
        """Whether any filter is set."""
        given = (self.q, self.agent, self.model, self.source, self.flags, self.parent, self.counted)
        narrowed = any(given) or bool(self.policy) or self.rollout is not None
        times = (self.since, self.until, self.arrived)
        return narrowed or any(at is not None for at in times)

    def address(self, cursor: str = "", **changes: Any) -> str:
        """The list's query string with some filters changed; "?" for the unfiltered list."""
        wanted = replace(self, **changes)
        pairs = [(name, getattr(wanted, name)) for name in ("q", *FACETS, "policy")]
        pairs += [("flag", flag) for flag in wanted.flags]
        pairs += [("parent", str(wanted.parent) if wanted.parent else "")]
        pairs += wanted.kept
        pairs += [("sort", wanted.sort if wanted.sort != "newest" else ""), ("cursor", cursor)]
        return "?" + urlencode([(name, value) for name, value in pairs if value])

    @property
    def kept(self) -> list[tuple[str, str]]:
        """Filters in the URL that have no field in the list's form."""
        times = ("since", self.since), ("until", self.until)
        pairs = [(name, written(at)) for name, at in times if at is not None]
        pairs = list(self.dates) or pairs
        pairs += [("arrived", _to_the_second(self.arrived))] if self.arrived is not None else []
        pairs += [("rollout", str(self.rollout))] if self.rollout else []
        pairs += [("demo", "1")] if self.demo else []
        return pairs + ([("counted", self.counted)] if self.counted else [])

    def toggled(self, flag: str) -> tuple[str, ...]:
        """The flags with this one toggled."""
        return tuple(one for one in FLAGS if (one in self.flags) != (one == flag))

    def rows(self, team: Team) -> QuerySet[Session]:
        """The matching sessions, annotated with `key` for pagination.

        Without a filter, sub-agents (counted with their parent) and warm-ups are excluded.
        """
        rows = matching(
            team,
            q=self.q,
            flags=self.flags,
            parent=self.parent,
            facets={name: getattr(self, name) for name in FACETS},
            within=(self.since, self.until),
            counted=self._condition(),
        )
        if not self.parent:
            rows = rows.filter(listed(team.pk, demo=self.demo))
        # The index puts the demo's sessions last: among those of the team they go by their time.
        mixed = self.demo and self.sort == "newest"
        return rows.annotate(key=ended() if mixed else SORT_KEYS[self.sort])

    def _condition(self) -> Q | None:
        """Conditions without a column of their own: tile, policy, rollout, arrival."""
        found = [Q(COUNTED[self.counted].found())] if self.counted else []
        found += [managed_by(self.policy)] if self.policy else []
        found += [Q(rollout=self.rollout)] if self.rollout else []
        if self.arrived is not None:
            found.append(Q(created__gte=datetime.fromtimestamp(self.arrived / 1000, UTC)))
        return Q(*found) if found else None

    def with_details(self, rows: QuerySet[Session]) -> QuerySet[Session]:
        """Annotate what a row shows: `child_count`, `compactions` in the log and in managed
        contexts, and the block that matches the search."""
        children = (
            Session.objects.filter(parent=OuterRef("pk"))
            .order_by()
            .values("parent")
            .annotate(n=Count("pk"))
            .values("n")
        )
        managed = (
            compactions_managed()
            .order_by()
            .values("run")
            .annotate(n=Count("pk", distinct=True))
            .values("n")
        )
        rows = rows.select_related("parent", "policy_version__policy").annotate(
            child_count=Coalesce(Subquery(children, output_field=IntegerField()), 0),
            compactions=F("compaction_count")
            + Coalesce(Subquery(managed, output_field=IntegerField()), 0),
        )
        if not self.q:
            return rows
        first = blocks_with(self.q).order_by("position").values("pk")[:1]
        return rows.annotate(match=Subquery(first))


def _to_the_second(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def list_version(request: HttpRequest) -> int:
    """The version of the "sessions" topic for this user."""
    return together(list_versions.list_version(team.pk) for team in teams_of(request))
