"""The session list, and the start page shown while it is empty."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions.access import team_of, teams_of
from sessions.actions.accounts.preferences import preferred
from sessions.actions.accounts.visits import visit_before
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.imports.uploads import FILES_AT_ONCE
from sessions.figures import moment
from sessions.importers import MOST_USED_FIRST
from sessions.marks import MARKS, EventMark
from sessions.models import Block, Rollout, Session, Team
from sessions.models.dashboard.facets import ALL, POLICY, Counted, facets
from sessions.models.dashboard.matching import FACETS, FLAGS, NEAR_LIMIT
from sessions.models.dashboard.tiles import COUNTED
from sessions.views.record.session_row import SessionRow
from sessions.views.web.dates import PRESETS, RANGE, DateControl, listed_dates
from sessions.views.web.demo_notice import demo_notice, left_out
from sessions.views.web.filters import SORTS, SessionFilters, list_version
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page
from sessions.views.web.reached import reached
from sessions.views.web.sparklines import HEIGHT, sparkline

VALUES = 40
"""Most values offered of a filter."""

LISTED = 40
"""Sessions on a page."""
COUNTED_UP_TO = 1_000
"""Matching sessions are counted up to here: more would be too slow for a page."""


NO_DATES: dict[str, Any] = {"dates": (), "since": None, "until": None}
"""Filters without a range."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the person's first page, to the start page without sessions, or to the account
    page without a team."""
    if not teams_of(request):
        return redirect("account")
    if not _any(team_of(request)):
        return redirect("start")
    return redirect(preferred(request).get("first_page") or "dashboard")


def _any(team: Team) -> bool:
    return Session.objects.for_team(team).exists()


@require_GET
def sessions(request: HttpRequest) -> HttpResponse:
    """List the team's sessions, newest first or sorted as requested."""
    team = team_of(request)
    if not _any(team):
        return redirect("start")
    keep_totals(team)
    version = list_version(request)  # before the rows: a change in between is announced again
    filters = SessionFilters.of(request.GET)
    rows = filters.rows(team)
    counted = facets(team, demo=filters.demo)
    total = _total(rows, filters, counted)
    shown = page(filters.with_details(rows), request.GET.get("cursor", ""), "key", LISTED)
    notice = demo_notice(request, team, switch=True)
    context = {
        **notice,
        "demo_matches": 0 if shown.rows or not left_out(notice) else _demo_matches(team, filters),
        "section": "sessions",
        "filters": filters,
        "rows": (listed := _rows(shown.rows, visited := visit_before(request.user, team))),
        "visited": visited,
        "new_url": _new_url(listed, visited, filters),
        "total": total,
        "version": version,
        "total_text": (total_text := _total_text(total, filters)),
        "folded": 0 if filters.active else sum(folded for *_, folded in counted[ALL]),
        "count_text": f"{len(shown.rows)} of {total_text}",
        "newer_url": filters.address(shown.newer) if shown.newer else "",
        "older_url": filters.address(shown.older) if shown.older else "",
        "chips": _chips(team, filters),
        "dates": (dates := _dates(request.GET, filters)),
        "ranges": (("", _any_time(filters)), *PRESETS.items()),
        "chosen_range": dict(filters.dates).get("range", ""),
        "more_open": bool(filters.flags or filters.source or filters.policy or dates.wrong),
        "flags": _flags(filters),
        "sorts": [
            (name, label, filters.address(sort=name), name == filters.sort)
            for name, label in SORTS.items()
        ],
        "facets": _facets(filters, counted),
        "sparkline_height": HEIGHT,
        "near_limit": NEAR_LIMIT,
    }
    return render(request, "record/sessions.html", context)


def _demo_matches(team: Team, filters: SessionFilters) -> int:
    """How many sessions of the demo match."""
    return replace(filters, demo=True).rows(team).filter(demo=True).order_by().count()


def _new_url(rows: list[SessionRow], visited: datetime | None, filters: SessionFilters) -> str:
    """The URL of the sessions that arrived since the previous visit; empty if the page shows none,
    or is narrowed by arrival."""
    if visited is None or filters.arrived is not None or not any(row.new for row in rows):
        return ""
    return filters.address(arrived=int(visited.timestamp()) * 1000)


def _rows(found: list[Session], visited: datetime | None) -> list[SessionRow]:
    wanted = [pk for session in found if (pk := getattr(session, "match", None))]
    matches = Block.objects.select_related("message").in_bulk(wanted) if wanted else {}
    return [
        SessionRow(
            session,
            sparkline(session.sparkline, session.hidden_tokens, session.window, session.step_count),
            matches.get(getattr(session, "match", None) or 0),
            new=visited is not None and session.created >= visited,
        )
        for session in found
    ]


def _dates(query: QueryDict, filters: SessionFilters) -> DateControl:
    """The date control, which keeps all other filters."""
    kept = parse_qsl(filters.address(**NO_DATES).removeprefix("?"))
    timed = filters.since is not None or filters.until is not None
    chosen = dict(filters.dates).get("range", "other" if timed else "")
    return listed_dates(query, kept, chosen)


def _any_time(filters: SessionFilters) -> str:
    """What the choice of dates says if none of its ranges applies."""
    return "Any time" if filters.since is None and filters.until is None else "Custom dates"


def _chips(team: Team, filters: SessionFilters) -> list[tuple[str, str, str]]:
    """Active filters: name, value, and the URL without it."""
    chips = [("text", f"“{filters.q}”", filters.address(q=""))] if filters.q else []
    for facet in FACETS:
        if value := getattr(filters, facet):
            chips.append((facet, value, filters.address(**{facet: ""})))
    for flag in filters.flags:
        chips.append(("with", FLAGS[flag][1].lower(), filters.address(flags=filters.toggled(flag))))
    if filters.parent:
        parent = Session.objects.for_team(team).filter(pk=filters.parent).first()
        name = str(parent) if parent else "a missing session"
        chips.append(("sub-agents of", name, filters.address(parent=None)))
    if filters.policy:
        chips.append(("policy", filters.policy, filters.address(policy="")))
    if filters.rollout:
        rollout = Rollout.objects.filter(team=team, pk=filters.rollout).first()
        name = str(rollout.version) if rollout else "a missing version"
        chips.append(("began in the rollout of", name, filters.address(rollout=None)))
    chips += _date_chips(filters)
    if filters.arrived is not None:
        arrived = _format_time(filters.arrived)
        chips.append(("arrived since", arrived, filters.address(arrived=None)))
    if filters.counted:
        title = COUNTED[filters.counted].title
        chips.append(("counted in", title, filters.address(counted="")))
    return chips


def _date_chips(filters: SessionFilters) -> list[tuple[str, str, str]]:
    if filters.dates:
        period = f"{_day(filters.since or 0)} to {_day((filters.until or 0) - 1)}"
        return [("dates", period, filters.address(**NO_DATES))]
    chips = []
    if filters.since is not None:
        chips.append(("since", _format_time(filters.since), filters.address(since=None)))
    if filters.until is not None:
        chips.append(("until", _format_time(filters.until), filters.address(until=None)))
    return chips


def _day(ms: int) -> str:
    at = timezone.localtime(moment(ms))
    return f"{at:%b} {at.day}, {at.year}"


def _format_time(ms: int) -> str:
    at = timezone.localtime(moment(ms))
    return f"{_day(ms)}, {at:%H:%M %Z}"


def _flags(filters: SessionFilters) -> list[tuple[EventMark, str, str, bool]]:
    return [
        (MARKS[kind], label, filters.address(flags=filters.toggled(flag)), flag in filters.flags)
        for flag, (kind, label, _) in FLAGS.items()
    ]


def _facets(filters: SessionFilters, counted: Counted) -> list[dict[str, Any]]:
    """Filter values with their number of sessions, most frequent first, and how many of these the
    unfiltered list hides; omits filters without a choice."""
    shown = []
    for facet in (*FACETS, POLICY):
        values = counted.get(facet, [])[:VALUES]
        chosen = getattr(filters, facet)
        if facet == POLICY and chosen and chosen not in {name for name, *_ in values}:
            values.insert(0, (chosen, _managed(counted.get(POLICY, []), chosen), 0))
        if len(values) > 1 or chosen:
            shown.append({"name": facet, "chosen": chosen, "values": values})
    return shown


def _managed(versions: list[tuple[str, int, int]], policy: str) -> int:
    """How many sessions a policy, or one of its versions, managed."""
    wanted = policy.removesuffix("@")
    return sum(many for name, many, _ in versions if wanted in (name, name.partition("@")[0]))


def _total(rows: QuerySet[Session], filters: SessionFilters, counted: Counted) -> int:
    """How many sessions match; of more than COUNTED_UP_TO, one more than that."""
    if not filters.active:
        return sum(many - folded for _, many, folded in counted[ALL])
    return rows.order_by()[: COUNTED_UP_TO + 1].count()


def _total_text(total: int, filters: SessionFilters) -> str:
    beyond = filters.active and total > COUNTED_UP_TO
    return f"{COUNTED_UP_TO:,}+" if beyond else f"{total:,}"


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Show ways to add sessions; the page waits for the first one."""
    team = team_of(request)
    version = list_version(request)  # before the rows: a change in between is announced again
    newest = Session.objects.for_team(team).order_by("-created").first()
    context = {
        **reached(request, team),
        **demo_notice(request, team),
        "section": "sessions",
        "team": team,
        "newest": newest,
        "newest_name": str(newest) if newest else "",
        "count": Session.objects.for_team(team).count() if newest else 0,
        "version": version,
        "demo_command": find_spec("sessions.management.commands.demo") is not None,
        "demo_job": "demo" in settings.JOB_KINDS,
        "upload_limit": settings.UPLOAD_LIMIT,
        "upload_files": FILES_AT_ONCE,
        "importers": MOST_USED_FIRST,
        "list_url": reverse("sessions"),
    }
    return render(request, "record/first_run.html", context)


_QUERY = (
    *(field.name for field in fields(SessionFilters) if field.name not in ("flags", "dates")),
    *("flag", "cursor", *RANGE),
)

PAGES = (
    Page(route="", view=home, name="home"),
    Page(route="start/", view=start, name="start"),
    Page(
        route="sessions/",
        query=_QUERY,
        view=sessions,
        name="sessions",
        link=Link(20, "Sessions", "sessions", "g s", "sessions"),
        about="agents, sub-agents, models, replay",
    ),
)
