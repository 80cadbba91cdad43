"""Search in the texts of all sessions, and the searches that a team keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction.context.blocks import KINDS
from sessions.access import actor_of, require, team_of, team_to, teams_of
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
from sessions.models.search import looked_up
from sessions.models.search.by_session import SessionHits, SessionPage
from sessions.models.search.presence import BlockState, State
from sessions.models.search.search import Hit
from sessions.models.search.search_words import QUERY_CHARS
from sessions.views.search.search_filters import TEXTS, SearchFilters
from sessions.views.web.dates import RANGE, listed_dates
from sessions.views.web.demo_notice import demo_notice
from sessions.views.web.pages import Link, Page
from sessions.views.web.places import entry_url, step_url

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
"""Offered while the demo is there."""

STATES = {
    "in_context": "in context",
    "named": "left at step {step}, a summary has the words",
    "retrievable": "offloaded at step {step}",
    "lost": "lost at step {step}",
    "left": "taken back at step {step}",
    "ended": "until step {step}",
}


NOT_LOST: dict[State, str] = {
    "in_context": "in context",
    "named": "named in a summary or stub",
    "retrievable": "retrievable",
    "left": "taken back",
    "ended": "replaced",
}
"""Where the hits of a session are that are not lost, in words."""


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
    def step(self) -> int:
        """The first step whose context has the block, at which its link opens the replay."""
        return max(1, min(self.hit.step, self.hit.session.step_count or 1))

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
        """Why the text left the context; empty if it did not. Of several words that match, a number
        or the longest is asked for: common words occur in too many blocks to be followed."""
        found = [text for matches, text in self.hit.excerpt if matches]
        matched = max(
            found, key=lambda text: (any(map(str.isdecimal, text)), len(text)), default=""
        )
        if self.hit.presence.state in ("in_context", "ended") or not matched:
            return ""
        return f"{reverse('why', args=[self.hit.session.pk])}?{urlencode({'text': matched})}"


def state_text(presence: BlockState) -> str:
    """Where a block is, in words."""
    return STATES[presence.state].format(step=presence.step)


@require_GET
def search_page(request: HttpRequest) -> HttpResponse:
    """Show blocks that hold what was typed, by session, the newest session first."""
    team = team_of(request)
    keep_totals(team)  # the agents and models to choose from are counted there
    filters = SearchFilters.of(request.GET)
    cursor = request.GET.get("after", "")
    digits = cursor.removeprefix("-")
    after = int(cursor) if digits.isascii() and digits.isdecimal() and len(cursor) < 19 else None
    found = filters.page([team], after)
    address = filters.address()
    waiting = Session.objects.for_team(team).filter(UNINDEXED)[: WAITING + 1].count()
    notice = demo_notice(request, team, switch=True)
    context = {
        **notice,
        "section": "search",
        "filters": filters,
        "query": filters.wanted.query,
        "groups": _groups(found, filters),
        "found_text": _found_text(found, filters, first=not after),
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
        "examples": [*EXAMPLES, *([DEMO_EXAMPLE] if notice["demo_data"] else [])],
        "waiting": f"{WAITING:,}+" if waiting > WAITING else f"{waiting:,}" if waiting else "",
        "saved": SavedSearch.objects.filter(team=team).order_by("name"),
        "address": address[1:],
        "query_chars": QUERY_CHARS,
        "name_chars": NAME_CHARS,
    }
    return render(request, "search/search.html", context)


def _found_text(found: SessionPage, filters: SearchFilters, *, first: bool) -> str:
    """How much was found: exactly if the page shows it all, else as the index counts the words."""
    if found.blocks is None:
        return f"More than {looked_up.COUNTED:,} hits, newest block first"
    order = "newest session first" + (
        ", the demo's last" if any(one.session.demo for one in found.groups) else ""
    )
    sessions = _count(len(found.groups), "session")
    if found.ending is not None:
        hits, holders = found.ending
        least = "" if found.all_read else "At least "
        return f"{least}{_count(hits, 'lost hit')} in {_count(holders, 'session')}, {order}"
    if filters.state:
        return f"{_count(found.shown, 'lost hit')} on this page, in {sessions}, {order}"
    if first and found.after is None and not any(one.more for one in found.groups):
        return f"{_count(found.shown, 'hit')} in {sessions}, {order}"
    about = f"{found.shown} of about {_count(found.blocks, 'hit')}"
    if found.sessions is None:
        return f"{about}, newest first"
    return f"{about} in {_count(found.sessions, 'session')}, {order}"


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def _groups(found: SessionPage, filters: SearchFilters) -> list[dict[str, Any]]:
    """Hits by session; within a session in the order of the prompt."""
    return [
        {
            "session": one.session,
            "rows": [HitRow(hit) for hit in reversed(one.shown)],
            "lost": (one.states or {}).get("lost", 0),
            "states": _states(one),
            "lost_url": filters.address(session=str(one.session.pk), state="lost"),
            "more_url": filters.address(session=str(one.session.pk)) if one.more else "",
        }
        for one in found.groups
    ]


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
    ),
    Page(route="search/saved/", view=save, name="search_save", needs={"POST": "write"}),
    Page(
        route="search/saved/<int:search_id>/remove/",
        view=remove,
        name="search_remove",
        needs={"POST": "write"},
    ),
)
