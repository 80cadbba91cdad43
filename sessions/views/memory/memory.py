"""Memory: boards with their notes, shares, subscriptions, and search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction import tokens
from compaction.board import board as chat_board
from compaction.board.board import KINDS, BoardSize, Rendered
from sessions.access import actor_of, allowed, require, session_of, team_of, teams_of
from sessions.actions.memory import boards, gathering
from sessions.models import Board, Note, Session, Share, Subscription
from sessions.models.memory.memory import Remembered, search, with_demo
from sessions.models.record.demo_data import listed
from sessions.views.memory.carried import NoteRow, board_verdict, carried, place_of
from sessions.views.web.demo_notice import SWITCH, asks_demo, demo_notice
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page

NAMES = {
    "task": "Task",
    "plan": "Plans",
    "agent": "Agents' findings",
    "knowledge": "Knowledge",
    "task_done": "Done",
    "summary": "Summary",
}
"""Names of note kinds on pages, in the order a board shows them."""

SAID_OF = {
    "task": "The task itself. Set once and never omitted.",
    "plan": "The agents' own plans, newest last.",
    "agent": "What agents reported at the end of a turn, and what sub-agents returned.",
    "knowledge": "Looked up, added by hand, shared by others, or observed about a project.",
    "task_done": "What agents reported when they were done.",
}

OF_A_KIND = 20
"""Notes of each kind shown at first, newest first."""

BOARDS, SHARES, SUBSCRIPTIONS = 20, 20, 50


@require_GET
def memory(request: HttpRequest) -> HttpResponse:
    """Show the team's boards, shares and subscriptions, with a search."""
    team = team_of(request)
    asked = request.GET.get("q", "").replace("\x00", "").strip()[:1_000]
    task = request.GET.get("task", "").replace("\x00", "").strip()[:300]
    rows = Board.objects.filter(team=team).select_related("session")
    its = listed(team.pk, demo=(demo := asks_demo(request)))
    live = Note.objects.filter(removed=None)
    rows = with_demo(rows).filter(its, Exists(live.filter(board=OuterRef("pk"))))
    shown = page(rows, request.GET.get("cursor", ""), "changed", BOARDS)
    of_sessions = listed(team.pk, "session__", demo=demo)
    shares = Share.objects.filter(of_sessions, team=team).select_related("session")
    subscribed = Subscription.objects.filter(of_sessions, session__team=team)
    subscribed = subscribed.select_related("session")
    context = {
        **demo_notice(request, team, switch=True),
        "section": "memory",
        "q": asked,
        "task": task,
        "found": _found(search([team], asked, task=task, limit=30, demo=demo)) if asked else [],
        "boards": _counted(shown.rows, live),
        "kinds": [(NAMES[kind], SAID_OF[kind]) for kind in KINDS],
        "shares": shares.annotate(delivered=Count("deliveries")).order_by("-pk")[:SHARES],
        "share_count": shares.count(),
        "subscriptions": subscribed.order_by("-pk")[:SUBSCRIPTIONS],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
    }
    return render(request, "memory/memory.html", context)


def board_name(board: Board) -> str:
    """The name of a board on pages."""
    if board.kind == Board.Kind.SESSION and board.session is not None:
        return str(board.session)
    return board.name


def _counted(
    boards: list[Board], notes: QuerySet[Note]
) -> list[tuple[Board, str, list[tuple[str, int]]]]:
    """Boards with their names, and how many of these notes of each kind they have."""
    rows = notes.filter(board__in=boards).values_list("board", "kind").annotate(Count("pk"))
    many = {(board, kind): count for board, kind, count in rows}
    return [
        (one, board_name(one), [(NAMES[kind], many.get((one.pk, kind), 0)) for kind in KINDS])
        for one in boards
    ]


def _found(rows: list[Remembered]) -> list[dict[str, Any]]:
    """Search hits with links to their source."""
    wanted = {row.session for row in rows if row.session}
    known = Session.objects.in_bulk(wanted)
    made = []
    for row in rows:
        session = known.get(row.session) if row.session else None
        url = reverse("replay", args=[session.pk]) if session is not None else ""
        if session is not None and row.message:
            url = place_of(session, row.message)
        made.append({"row": row, "kind": NAMES[row.kind], "url": url, "session": session})
    return made


@require_GET
def of_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Bring a session's board up to date and show it."""
    session = session_of(request, session_id)
    gathering.gather(session)
    address = reverse("memory_board", args=[boards.board_of(session).pk])
    return redirect(f"{address}?{urlencode({'session': session.pk})}")


@require_GET
def board(request: HttpRequest, board_id: int) -> HttpResponse:
    """Show one board by kind, with the source of each note."""
    found = Board.objects.filter(team__in=teams_of(request), pk=board_id)
    shown = found.select_related("session", "team").first()
    if shown is None:
        raise Http404("no such board")
    rows = shown.notes.filter(removed=None).select_related("session", "share__session")
    kind = request.GET.get("kind", "")
    kind = kind if kind in KINDS else ""
    counts = dict(rows.order_by().values_list("kind").annotate(many=Count("pk")))
    made = _as_read(shown)
    if kind:
        part = page(rows.filter(kind=kind), request.GET.get("cursor", ""), "created")
        listed = {kind: carried(part.rows)}
    else:
        part = None
        newest = rows.order_by("-pk")
        listed = {
            one: carried(newest.filter(kind=one)[:OF_A_KIND]) for one in NAMES if counts.get(one)
        }
    kept = set(made.kept)
    groups = [
        _group(one, counts.get(one, 0), [replace(row, shown=row.note.key in kept) for row in notes])
        for one, notes in listed.items()
    ]
    every = [row for group in groups for row in group["rows"]]
    context = {
        "section": "memory",
        "team": shown.team,
        "board": shown,
        "name": board_name(shown),
        "session": _session_of(request, shown),
        "entries": sum(counts.values()),
        "made": made,
        "may_write": allowed(request, shown.team, "write"),
        "kind": kind,
        "subscriptions": _subscribed(shown),
        "verdict": board_verdict(every) if every else None,
        "groups": groups,
        "newer_url": _more_url(kind, part.newer if part else ""),
        "older_url": _more_url(kind, part.older if part else ""),
    }
    return render(request, "memory/board.html", context)


def _group(kind: str, many: int, rows: list[NoteRow]) -> dict[str, Any]:
    """The notes of one kind, the newest of `many`."""
    return {
        "kind": kind,
        "name": NAMES[kind],
        "said": SAID_OF[kind],
        "count": many,
        "more": many - len(rows),
        "rows": rows,
    }


def _more_url(kind: str, cursor: str) -> str:
    return f"?{urlencode({'kind': kind, 'cursor': cursor})}" if cursor else ""


def _session_of(request: HttpRequest, board: Board) -> Session | None:
    """The session that linked here, or that owns the board."""
    if board.session is not None:
        return board.session
    try:
        asked = UUID(request.GET.get("session", ""))
    except ValueError:
        return None
    return Session.objects.filter(team=board.team, pk=asked).first()


def _as_read(board: Board) -> Rendered:
    return chat_board.render(boards.entries_of(board), BoardSize(), tokens.count)


def _subscribed(board: Board) -> QuerySet[Subscription]:
    """Subscriptions of sessions that use this board, and subscriptions to its task."""
    if board.kind == Board.Kind.TASK:
        about = Q(session__task=board.name) | Q(kind="task", value=board.name)
    else:
        about = Q(session=board.session_id)
    rows = Subscription.objects.filter(about, session__team=board.team)
    return rows.select_related("session").order_by("-pk")[:SUBSCRIPTIONS]


@require_POST
def remove(request: HttpRequest, note_id: int) -> HttpResponse:
    """Remove a note from its board permanently."""
    rows = Note.objects.filter(board__team__in=teams_of(request), removed=None)
    row = rows.filter(pk=note_id).select_related("board__team").first()
    if row is None:
        raise Http404("no such entry")
    require(request, row.board.team, "write")
    boards.remove(row, actor_of(request))
    return redirect("memory_board", row.board_id)


PAGES = (
    Page(
        route="memory/",
        query=("q", "task", "cursor", SWITCH),
        view=memory,
        name="memory",
        link=Link(45, "Memory", "memory", "g m", "memory", "Diagnose"),
        about="boards, notes, shares, subscriptions",
    ),
    Page(
        route="memory/boards/<int:board_id>/",
        query=("kind", "session", "cursor"),
        view=board,
        name="memory_board",
    ),
    Page(route="memory/sessions/<uuid:session_id>/", view=of_session, name="memory_of_session"),
    Page(
        route="memory/notes/<int:note_id>/remove/",
        view=remove,
        name="memory_remove",
        needs={"POST": "write"},
    ),
)
