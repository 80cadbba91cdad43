"""What is searched for, as in the URL of the search page."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet
from django.http import QueryDict

from compaction.context.blocks import KINDS
from sessions.models import Session, Team
from sessions.models.search.by_session import (
    AT_ONCE,
    SessionPage,
    newest_blocks,
    search_by_session,
)
from sessions.models.search.looked_up import Wanted
from sessions.models.search.presence import State
from sessions.models.search.search import HITS, sessions_with
from sessions.models.search.search_words import QUERY_CHARS, SearchQuery
from sessions.views.web.dates import Pairs, dates_of

EACH = 5
"""Hits shown of a session, unless only that one is searched."""


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """The search of the page's URL, as typed; invalid values do not narrow."""

    q: str = ""
    agent: str = ""
    model: str = ""
    tool: str = ""
    kind: str = ""
    error: str = ""
    cost: str = ""
    session: str = ""
    state: str = ""
    demo: str = ""
    dates: Pairs = ()

    @classmethod
    def of(cls, query: QueryDict) -> SearchFilters:
        """Parse the query string."""
        found = {one: query.get(one, "").replace("\x00", "").strip()[:QUERY_CHARS] for one in TEXTS}
        return cls(**found, dates=dates_of(query)[0])

    def address(self, **changes: Any) -> str:
        """The query string with some filters changed; "?" for none."""
        wanted = replace(self, **changes)
        pairs = [*((one, getattr(wanted, one)) for one in TEXTS), *wanted.dates]
        return "?" + urlencode([(name, value) for name, value in pairs if value])

    @property
    def named(self) -> UUID | None:
        """The session to search in."""
        try:
            return UUID(self.session)
        except ValueError:
            return None

    @property
    def asks(self) -> bool:
        """Whether there is something to find: a query, or failed tool calls."""
        return bool(self.q or self.error)

    @property
    def wanted(self) -> Wanted:
        """What blocks must have."""
        kind = self.kind if self.kind in KINDS else ""
        query = SearchQuery.of(self.q)
        return Wanted(query, self.tool, kind, bool(self.error))

    def page(self, teams: list[Team], after: int | None) -> SessionPage:
        """A page of hits by session: the newest session first, or the newest block if too many
        hold the words."""
        rows = self.sessions(teams)
        state: State | None = "lost" if self.state == "lost" else None
        each = AT_ONCE if self.named else EACH
        found = search_by_session(
            teams, self.wanted, rows, state=state, after=max(after or 0, 0), each=each
        )
        if found is None or (self.named and (found.blocks or 0) > AT_ONCE):
            return newest_blocks(
                teams,
                self.wanted,
                rows,
                state=state,
                after=after,
                each=HITS if self.named else EACH,
                blocks=found.blocks if found else None,
            )
        return found

    def demo_holders(self, teams: list[Team]) -> int:
        """How many sessions of the demo match: at least, if there are many."""
        found = replace(self, demo="1").page(teams, None)
        return sum(one.session.demo for one in found.groups)

    def sessions(self, teams: list[Team]) -> QuerySet[Session]:
        """The sessions of these teams to search in."""
        period = dates_of(QueryDict(urlencode(self.dates)))[1]
        rows = sessions_with(
            teams,
            agent=self.agent,
            model=self.model,
            since=period.since if period else None,
            until=period.until if period else None,
            cost=_microusd(self.cost),
            demo=self.demo == "1" or self.named is not None,
        )
        return rows.filter(pk=self.named) if self.named else rows


TEXTS = tuple(one.name for one in fields(SearchFilters) if one.name != "dates")
"""Query parameters of the search but its dates."""


def given_after(query: QueryDict) -> int | None:
    """Where the page begins, as the address says; None for the first page."""
    given = query.get("after", "")
    digits = given.removeprefix("-")
    return int(given) if digits.isascii() and digits.isdecimal() and len(given) < 19 else None


def _microusd(text: str) -> int | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return int(value * 1_000_000) if value.is_finite() and 0 <= value < 10**9 else None
