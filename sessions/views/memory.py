"""Anchors and memory: boards by kind, what carries each entry, shares, and the search in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from compaction import tokens
from compaction.board import board as chat_board
from compaction.board.board import KINDS, BoardSize, Rendered
from sessions.actions import boards, gathering
from sessions.api.access import actor_of, allowed, require, session_of, team_of, teams_of
from sessions.models import Anchor, Board, Entry, Run, Session, Share, Subscription
from sessions.models.memory import Remembered, search
from sessions.models.values import CHUNK
from sessions.views.paging import page
from sessions.views.places import step_url

NAMES = {
    "task": "Task",
    "plan": "Plans",
    "agent": "Findings of agents",
    "knowledge": "Knowledge",
    "task_done": "Finished",
    "summary": "Summary",
}
"""How kinds of entries are called on pages, in the order in which a board shows them."""

SAID_OF = {
    "task": "What it is all about. Set once; it is never left out.",
    "plan": "The agents' own lists, the newest last.",
    "agent": "What agents told the people at the end of a turn, and what sub-agents brought back.",
    "knowledge": "What was looked up, put here by hand, shared by others, or seen of a project.",
    "task_done": "What agents reported when they were done.",
}

OF_A_KIND = 20
"""Entries of each kind that a board shows at first, the newest."""

BOARDS, SHARES, SUBSCRIPTIONS = 20, 20, 50


@dataclass(frozen=True, slots=True)
class Row:
    """An entry and what carries it: where it was read, and what became of that place since."""

    anchor: Anchor
    url: str
    place: str
    carried: str
    revision_url: str = ""


@require_GET
def memory(request: HttpRequest) -> HttpResponse:
    """The team's boards, what its sessions shared, who subscribed, and a search in all of it."""
    team = team_of(request)
    asked = request.GET.get("q", "").replace("\x00", "").strip()[:1_000]
    task = request.GET.get("task", "").replace("\x00", "").strip()[:300]
    live = Q(anchors__removed=None)
    counted = {
        f"{kind}_count": Count("anchors", filter=live & Q(anchors__kind=kind)) for kind in KINDS
    }
    rows = Board.objects.filter(team=team).select_related("session")
    rows = rows.annotate(entries=Count("anchors", filter=live), **counted).filter(entries__gt=0)
    shown = page(rows, request.GET.get("cursor", ""), "changed", BOARDS)
    shares = Share.objects.filter(team=team).select_related("session")
    subscribed = Subscription.objects.filter(session__team=team).select_related("session")
    context = {
        "section": "memory",
        "team": team,
        "q": asked,
        "task": task,
        "found": _found(search([team], asked, task=task, limit=30)) if asked else [],
        "boards": [(board, board_name(board), _counts(board)) for board in shown.rows],
        "kinds": [NAMES[kind] for kind in KINDS],
        "shares": shares.annotate(delivered=Count("deliveries")).order_by("-pk")[:SHARES],
        "share_count": shares.count(),
        "subscriptions": subscribed.order_by("-pk")[:SUBSCRIPTIONS],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
    }
    return render(request, "memory/memory.html", context)


def board_name(board: Board) -> str:
    """What a board is called on pages."""
    if board.kind == Board.Kind.SESSION and board.session is not None:
        return str(board.session)
    return board.name


def _counts(board: Any) -> list[int]:
    return [getattr(board, f"{kind}_count") for kind in KINDS]


def _found(rows: list[Remembered]) -> list[dict[str, Any]]:
    """Results with where they lead."""
    wanted = {row.session for row in rows if row.session}
    known = Session.objects.in_bulk(wanted)
    made = []
    for row in rows:
        session = known.get(row.session) if row.session else None
        url = reverse("replay", args=[session.pk]) if session is not None else ""
        if session is not None and row.message:
            url = _place(session, row.message)
        made.append({"row": row, "kind": NAMES[row.kind], "url": url, "session": session})
    return made


def _place(session: Session, message: int) -> str:
    born = session.messages.filter(seq=message).values_list("born", flat=True).first()
    return step_url(session, born or 1, None, str(message))


@require_GET
def of_session(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The board of a session, brought up to what is stored of it."""
    session = session_of(request, session_id)
    gathering.gather(session)
    address = reverse("memory_board", args=[boards.board_of(session).pk])
    return redirect(f"{address}?{urlencode({'session': session.pk})}")


@require_GET
def board(request: HttpRequest, board_id: int) -> HttpResponse:
    """One board by kind, with what carries each of its entries."""
    found = Board.objects.filter(team__in=teams_of(request), pk=board_id)
    shown = found.select_related("session", "team").first()
    if shown is None:
        raise Http404("no such board")
    rows = shown.anchors.filter(removed=None).select_related("session", "share__session")
    kind = request.GET.get("kind", "")
    counts = dict(rows.order_by().values_list("kind").annotate(many=Count("pk")))
    context = {
        "section": "memory",
        "team": shown.team,
        "board": shown,
        "name": board_name(shown),
        "session": _session_of(request, shown),
        "entries": sum(counts.values()),
        "made": _as_read(shown),
        "may_write": allowed(request, shown.team, "write"),
        "kind": kind if kind in KINDS else "",
        "subscriptions": _subscribed(shown),
    }
    if kind in KINDS:
        part = page(rows.filter(kind=kind), request.GET.get("cursor", ""), "created")
        groups = [(str(kind), counts.get(kind, 0), carried(part.rows))]
        more = {"newer_url": part.newer, "older_url": part.older}
        context |= {
            name: f"?{urlencode({'kind': kind, 'cursor': cursor})}" if cursor else ""
            for name, cursor in more.items()
        }
    else:
        groups = [
            (one, counts[one], carried(rows.filter(kind=one).order_by("-pk")[:OF_A_KIND]))
            for one in NAMES
            if counts.get(one)
        ]
    context["groups"] = [
        {
            "kind": one,
            "name": NAMES[one],
            "said": SAID_OF[one],
            "count": many,
            "more": many - len(listed),
            "rows": listed,
        }
        for one, many, listed in groups
    ]
    return render(request, "memory/board.html", context)


def _session_of(request: HttpRequest, board: Board) -> Session | None:
    """The session whose page one came from, or whose own board it is."""
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
    """Sessions that this board's shares come to, and those that fill it from others'."""
    if board.kind == Board.Kind.TASK:
        about = Q(session__task=board.name) | Q(kind="task", value=board.name)
    else:
        about = Q(session=board.session_id)
    rows = Subscription.objects.filter(about, session__team=board.team)
    return rows.select_related("session").order_by("-pk")[:SUBSCRIPTIONS]


def carried(rows: Iterable[Anchor]) -> list[Row]:
    """Entries with what carries each: the message as it stands, a summary in its place, a share,
    or nothing but the board."""
    listed = list(rows)
    closed = _closed(listed)
    made = []
    for row in listed:
        if row.share is not None:
            url = reverse("replay", args=[row.share.session.pk])
            made.append(Row(row, url, str(row.share.session), f"share {row.share.number}"))
        elif row.session is None or row.message is None:
            by = {"agent": "put here by an agent", "person": "put here by hand"}
            what = f"seen {sum(row.evidence.values())} times" if row.evidence else ""
            url = reverse("replay", args=[row.session.pk]) if row.session is not None else ""
            name = str(row.session) if row.session is not None else ""
            made.append(Row(row, url, name, what or by.get(row.by, "the board alone")))
        else:
            url = _place(row.session, row.message)
            place = f"message {row.message}"
            gone = closed.get((row.session.pk, row.message))
            if gone is None:
                made.append(Row(row, url, place, "stands in the context"))
            else:
                run, number = gone
                address = reverse("revision", args=[row.session.pk, run, number])
                made.append(Row(row, url, place, f"left it at r{number}", address))
    return made


def _closed(rows: list[Anchor]) -> dict[tuple[UUID, int], tuple[str, int]]:
    """Messages that left the context that their agent has now: in which run, by which revision."""
    wanted: dict[UUID, set[int]] = defaultdict(set)
    for row in rows:
        if row.session_id is not None and row.message is not None:
            wanted[row.session_id].add(row.message)
    found: dict[tuple[UUID, int], tuple[str, int]] = {}
    for session, seqs in list(wanted.items())[:CHUNK]:
        runs = Run.objects.filter(session=session, origin__in=("served", "recorded"))
        run = runs.order_by("-origin").values_list("pk", "origin").first()
        if run is None:
            continue
        left = Entry.objects.filter(
            run=run[0], block__message__seq__in=sorted(seqs), closed_by__isnull=False
        )
        for seq, number in left.values_list("block__message__seq", "closed_by__revision__number"):
            found[session, seq] = (run[1], number)
    return found


@require_POST
def remove(request: HttpRequest, anchor_id: int) -> HttpResponse:
    """Takes an entry off its board for good."""
    rows = Anchor.objects.filter(board__team__in=teams_of(request), removed=None)
    row = rows.filter(pk=anchor_id).select_related("board__team").first()
    if row is None:
        raise Http404("no such entry")
    require(request, row.board.team, "write")
    boards.remove(row, actor_of(request))
    return redirect("memory_board", row.board_id)
