"""Search in the texts of all sessions, and the searches that a team keeps."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.context.blocks import KINDS
from sessions.access import actor_of, require, team_of, team_to, teams_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.search.indexing import UNINDEXED
from sessions.actions.search.lost_lines import lost_lines
from sessions.actions.search.saved_searches import (
    NAME_CHARS,
    TooManySaved,
    remove_search,
    save_search,
)
from sessions.models import Archive, SavedSearch, Session, Team
from sessions.models.dashboard.facets import facets
from sessions.models.search import looked_up
from sessions.models.search.by_session import PROGRESS, SessionHits, SessionPage
from sessions.models.search.presence import State
from sessions.models.search.search import Hit
from sessions.models.search.search_words import QUERY_CHARS
from sessions.views.search.hit_row import HitRow
from sessions.views.search.search_filters import TEXTS, SearchFilters, given_after
from sessions.views.search.step_asked import step_offers
from sessions.views.web.dates import RANGE, listed_dates
from sessions.views.web.demo_notice import demo_notice, left_out
from sessions.views.web.pages import Link, Page

WAITING = 1_000
"""Sessions that are not indexed are counted up to here."""

VALUES = 40
"""Most values offered of a filter."""

EXAMPLES = (
    ("state=lost&q=error", "error", "mentions of errors that are lost now"),
    ("error=1", "failed tool calls", "of any session, without a word to look up"),
    ("q=config&kind=file", "config", "files read that mention a config"),
)
"""Searches offered before the first: filters, query, and what it finds."""

DEMO_EXAMPLE = ("q=8417&demo=1", "8417", "the port that the demo loses, and where")
"""Offered while the demo is searched."""

NOT_LOST: dict[State, str] = {
    "in_context": "in context",
    "named": "named in a summary or stub",
    "retrievable": "retrievable",
    "left": "taken back",
    "ended": "replaced",
}
"""Where the hits of a session are that are not lost, in words."""

TOGETHER_FIRST = "the words as typed first, then newest session first"
"""The order of hits if only some hold the words side by side."""

_TIMEOUT = re.compile(r'"?\btimeouts?\b"?', re.IGNORECASE)


@require_GET
def search_page(request: HttpRequest) -> HttpResponse:
    """Show blocks that hold what was typed, by session, the newest session first."""
    team = team_of(request)
    keep_totals(team)  # the agents and models to choose from are counted there
    filters = SearchFilters.of(request.GET)
    after = given_after(request.GET)
    found = filters.page([team], after)
    address = filters.address()
    waiting = Session.objects.for_team(team).filter(UNINDEXED)[: WAITING + 1].count()
    archived = Archive.objects.filter(session__team=team).count()
    query = filters.wanted.query
    rows = filters.sessions([team])
    lost = lost_lines(rows, query)
    notice = demo_notice(request, team, switch=True)
    shows_demo = notice["demo_data"] and not left_out(notice)
    context = {
        **notice,
        "section": "search",
        "filters": filters,
        "query": query,
        "groups": _groups(found, filters),
        "steps": step_offers(rows, filters.q),
        "lost": lost,
        "nothing_so_far": f"No {'further ' if lost or after else ''}match so far",
        "timed_out_url": _timed_out_url(filters),
        "found_text": _found_text(found, filters, first=not after),
        "searched_text": _searched_text(found),
        "blocks": found.blocks,
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
        "examples": [*EXAMPLES, *([DEMO_EXAMPLE] if shows_demo else [])],
        "waiting": f"{WAITING:,}+" if waiting > WAITING else f"{waiting:,}" if waiting else "",
        "archived": f"{archived:,}" if archived else "",
        "saved": SavedSearch.objects.filter(team=team).order_by("name"),
        "address": address[1:],
        "demo_matches": _demo_matches(found, filters, notice) if after is None else 0,
        "query_chars": QUERY_CHARS,
        "name_chars": NAME_CHARS,
    }
    return render(request, "search/search.html", context)


def _demo_matches(found: SessionPage, filters: SearchFilters, notice: dict[str, Any]) -> int:
    """How many sessions of the demo match, if nothing is found because the demo is left out."""
    hides = left_out(notice) and not filters.named
    nothing = filters.asks and not found.groups and not found.after
    return filters.demo_holders([notice["team"]]) if hides and nothing else 0


def _timed_out_url(filters: SearchFilters) -> str:
    """The search for what most errors call a timeout; empty if it does not ask for one."""
    if not filters.error or not _TIMEOUT.search(filters.q):
        return ""
    return filters.address(q=_TIMEOUT.sub('"timed out"', filters.q))


def _found_text(found: SessionPage, filters: SearchFilters, *, first: bool) -> str:
    """How much was found: exactly if the page shows it all, else as the index counts the words."""
    sessions = _count(len(found.groups), "session")
    lost = f"{_count(found.shown, 'lost hit')} on this page, in {sessions}"
    if found.blocks is None:
        many = lost if filters.state else f"More than {looked_up.COUNTED:,} hits"
        return f"{many}, newest block first"
    together = [any(hit.together for hit in one.shown) for one in found.groups]
    order = "newest session first" if all(together) or not any(together) else TOGETHER_FIRST
    order += ", the demo's last" if any(one.session.demo for one in found.groups) else ""
    if found.ending is not None:
        hits, holders = found.ending
        least = "" if found.all_read else "At least "
        return f"{least}{_count(hits, 'lost hit')} in {_count(holders, 'session')}, {order}"
    if filters.state:
        return f"{lost}, {order}"
    if first and found.after is None and not any(one.more for one in found.groups):
        return f"{_count(found.shown, 'hit')} in {sessions}, {order}"
    about = f"{found.shown} of about {_count(found.blocks, 'hit')}"
    if found.sessions is None:
        return f"{about}, newest first"
    return f"{about} in {_count(found.sessions, 'session')}, {order}"


def _searched_text(found: SessionPage) -> str:
    """How far the search got, on this page and those before; empty if unknown."""
    if found.searched is None:
        return ""
    passed, every = found.searched
    many = _count(every, "hit" if found.sessions is None else "session")
    if every >= PROGRESS:
        many = f"at least {many}"
    return f"Searched {'all' if found.after is None else f'{passed:,} of'} {many}."


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def _groups(found: SessionPage, filters: SearchFilters) -> list[dict[str, Any]]:
    """Hits by session, within a session in the order of the prompt; those with the words together
    first and, of failed tool calls, error lines before all."""
    groups = sorted(found.groups, key=lambda one: min(_rank(hit, filters) for hit in one.shown))
    return [
        {
            "session": one.session,
            "rows": _rows(one.shown, filters),
            "hits": sum((one.states or {}).values()),
            "lost": (one.states or {}).get("lost", 0),
            "states": _states(one),
            "lost_url": filters.address(session=str(one.session.pk), state="lost"),
            "more_url": filters.address(session=str(one.session.pk)) if one.more else "",
        }
        for one in groups
    ]


def _rows(shown: list[Hit], filters: SearchFilters) -> list[HitRow]:
    hits = shown[::-1]
    hits.sort(key=lambda hit: _rank(hit, filters))
    return [HitRow(hit) for hit in hits]


def _rank(hit: Hit, filters: SearchFilters) -> tuple[bool, bool]:
    return bool(filters.error) and not hit.error_line, not hit.together


def _states(group: SessionHits) -> list[str]:
    """Where the hits of a session are that are not lost, in words; in context always."""
    counts = group.states
    if counts is None:
        return []
    return [
        f"{counts.get(state, 0):,} {word}"
        for state, word in NOT_LOST.items()
        if state == "in_context" or counts.get(state)
    ]


_YES_OR_NO = {"error": ("with", "failed tool calls"), "state": ("only", "lost text")}
"""Filters that are set or not, in words."""


def _chips(team: Team, filters: SearchFilters) -> list[tuple[str, str, str]]:
    """Active filters: name, value, and the URL without it."""
    chips = []
    for one in TEXTS:
        value = getattr(filters, one)
        if not value or one in ("q", "demo"):
            continue
        if one == "session":
            named = (
                filters.named and Session.objects.for_team(team).filter(pk=filters.named).first()
            )
            value = str(named) if named else "a missing session"
        name, value = _YES_OR_NO.get(one, (one, value))
        chips.append((name, value, filters.address(**{one: ""})))
    return chips


def _facets(team: Team, filters: SearchFilters) -> list[tuple[str, str, list[str]]]:
    """Agents and models to choose from: name, chosen value, and values."""
    counted = facets(team, demo=filters.demo == "1")
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
    if not name or not filters.asks:
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
        about="text of messages, lost facts, saved searches",
    ),
    Page(route="search/saved/", view=save, name="search_save", needs={"POST": "write"}),
    Page(
        route="search/saved/<int:search_id>/remove/",
        view=remove,
        name="search_remove",
        needs={"POST": "write"},
    ),
)
