"""Search in the texts of all sessions, and the searches that a team keeps."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.context.blocks import KINDS
from sessions.access import actor_of, allowed, require, team_of, team_to, teams_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.search.indexing import UNINDEXED
from sessions.actions.search.saved_searches import (
    NAME_CHARS,
    TooManySaved,
    remove_search,
    save_search,
)
from sessions.models import SavedSearch, Session, Team
from sessions.models.dashboard.facets import facets
from sessions.models.search.presence import BlockState
from sessions.models.search.search import (
    HITS,
    Hit,
    SearchPage,
    Wanted,
    search,
    sessions_with,
)
from sessions.models.search.search_words import QUERY_CHARS, SearchQuery
from sessions.views.web.dates import RANGE, Pairs, dates_of, listed_dates
from sessions.views.web.pages import Link, Page
from sessions.views.web.places import entry_url, step_url

EACH = 5
"""Hits shown of a session, unless only that one is searched."""

WAITING = 1_000
"""Sessions that are not indexed are counted up to here."""

VALUES = 40
"""Most values offered of a filter."""

STATES = {
    "in_context": "in context",
    "named": "left at step {step}, a summary has the words",
    "retrievable": "offloaded at step {step}",
    "lost": "lost at step {step}",
    "left": "taken back at step {step}",
    "ended": "until step {step}",
}


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
    def wanted(self) -> Wanted:
        """What blocks must have."""
        kind = self.kind if self.kind in KINDS else ""
        query = SearchQuery.of(self.q)
        return Wanted(query, self.tool, kind, bool(self.error))

    def page(self, teams: list[Team], after: int | None) -> SearchPage:
        """A page of hits."""
        period = dates_of(QueryDict(urlencode(self.dates)))[1]
        rows = sessions_with(
            teams,
            agent=self.agent,
            model=self.model,
            since=period.since if period else None,
            until=period.until if period else None,
            cost=_microusd(self.cost),
        )
        rows = rows.filter(pk=self.named) if self.named else rows
        return search(teams, self.wanted, rows, after=after, each=HITS if self.named else EACH)


TEXTS = tuple(one.name for one in fields(SearchFilters) if one.name != "dates")
"""Query parameters of the search but its dates."""


def _microusd(text: str) -> int | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return int(value * 1_000_000) if value.is_finite() and 0 <= value < 10**9 else None


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as the page shows it."""

    hit: Hit

    @property
    def url(self) -> str:
        """The replay at the step where the block appears, with the block selected."""
        hit = self.hit
        if hit.replacement:
            return step_url(hit.session, hit.step, hit.run, hit.replacement)
        return entry_url(hit.session, hit.block)

    @property
    def state(self) -> str:
        """Where the block is at the end."""
        return state_text(self.hit.presence)

    @property
    def state_url(self) -> str:
        """The replay at the step at which the block left the context."""
        return entry_url(self.hit.session, self.hit.block, self.hit.presence.step)

    @property
    def why_url(self) -> str:
        """Why the text left the context; empty if it did not."""
        matched = next((text for matches, text in self.hit.excerpt if matches), "")
        if self.hit.presence.state in ("in_context", "ended") or not matched:
            return ""
        return f"{reverse('why', args=[self.hit.session.pk])}?{urlencode({'text': matched})}"


def state_text(presence: BlockState) -> str:
    """Where a block is, in words."""
    return STATES[presence.state].format(step=presence.step)


@require_GET
def search_page(request: HttpRequest) -> HttpResponse:
    """Show blocks that hold what was typed, by session, newest first."""
    team = team_of(request)
    keep_totals(team)  # the agents and models to choose from are counted there
    filters = SearchFilters.of(request.GET)
    cursor = request.GET.get("after", "")
    digits = cursor.removeprefix("-")
    after = int(cursor) if digits.isascii() and digits.isdecimal() and len(cursor) < 19 else None
    found = filters.page([team], after)
    address = filters.address()
    waiting = Session.objects.for_team(team).filter(UNINDEXED)[: WAITING + 1].count()
    context = {
        "section": "search",
        "team": team,
        "filters": filters,
        "query": filters.wanted.query,
        "groups": _groups(found, filters),
        "hits": found.hits,
        "stopped": found.stopped,
        "older_url": f"{address}&after={found.after}" if found.after else "",
        "first_url": address if after else "",
        "chips": _chips(team, filters),
        "dates": listed_dates(
            request.GET,
            parse_qsl(filters.address(dates=())[1:]),
            dict(filters.dates).get("range", ""),
        ),
        "facets": _facets(team, filters),
        "kinds": KINDS,
        "waiting": f"{WAITING:,}+" if waiting > WAITING else f"{waiting:,}" if waiting else "",
        "saved": SavedSearch.objects.filter(team=team).order_by("name"),
        "address": address[1:],
        "may_write": allowed(request, team, "write"),
        "query_chars": QUERY_CHARS,
        "name_chars": NAME_CHARS,
    }
    return render(request, "search/search.html", context)


def _groups(found: SearchPage, filters: SearchFilters) -> list[dict[str, Any]]:
    """Hits by session, in the order of the newest; within a session in that of the prompt."""
    groups: dict[UUID, dict[str, Any]] = {}
    for hit in found.hits:
        pk = hit.session.pk
        more = filters.address(session=str(pk)) if pk in found.more else ""
        group = groups.setdefault(pk, {"session": hit.session, "rows": [], "more_url": more})
        group["rows"].insert(0, HitRow(hit))
    return list(groups.values())


def _chips(team: Team, filters: SearchFilters) -> list[tuple[str, str, str]]:
    """Active filters: name, value, and the URL without it."""
    chips = []
    for one in TEXTS:
        value = getattr(filters, one)
        if not value or one == "q":
            continue
        if one == "session":
            named = (
                filters.named and Session.objects.for_team(team).filter(pk=filters.named).first()
            )
            value = str(named) if named else "a missing session"
        if one == "error":
            value = "only"
        chips.append((one, value, filters.address(**{one: ""})))
    return chips


def _facets(team: Team, filters: SearchFilters) -> list[tuple[str, str, list[str]]]:
    """Agents and models to choose from: name, chosen value, and values."""
    counted = facets(team)
    found = []
    for name in ("agent", "model"):
        values = [value for value, *_ in counted.get(name, [])[:VALUES]]
        chosen = getattr(filters, name)
        if chosen and chosen not in values:
            values.insert(0, chosen)
        found.append((name, chosen, values))
    return found


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Keep the search under a name, for the whole team."""
    team = team_to(request, "write")
    filters = SearchFilters.of(QueryDict(request.POST.get("query", "")[:4_000]))
    name = " ".join(request.POST.get("name", "").replace("\x00", "").split())[:NAME_CHARS]
    if not name or not filters.q:
        messages.warning(request, "Enter a query and a name to save a search.")
        return redirect(reverse("search") + filters.address())
    try:
        save_search(team, actor_of(request), name, filters.address()[1:])
        messages.success(request, f"Saved as “{name}”.")
    except TooManySaved:
        messages.warning(request, "The team has too many saved searches. Delete one first.")
    return redirect(reverse("search") + filters.address())


@require_POST
def remove(request: HttpRequest, search_id: int) -> HttpResponse:
    """Delete a saved search."""
    saved = SavedSearch.objects.filter(team__in=teams_of(request), pk=search_id).first()
    if saved is None:
        raise Http404("no such search")
    require(request, saved.team, "write")
    messages.success(request, f"“{saved}” was deleted.")
    remove_search(saved, actor_of(request))
    return redirect(f"{reverse('search')}?team={saved.team.slug}")


PAGES = (
    Page(
        route="search/",
        query=(*TEXTS, *RANGE, "after"),
        view=search_page,
        name="search",
        link=Link(25, "Search", "search", "g f", "search"),
    ),
    Page(route="search/saved/", view=save, name="search_save", needs={"POST": "write"}),
    Page(
        route="search/saved/<int:search_id>/remove/",
        view=remove,
        name="search_remove",
        needs={"POST": "write"},
    ),
)
