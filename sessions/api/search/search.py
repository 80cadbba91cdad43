"""Search in the texts of all sessions, or of one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from sessions.access import session_of, teams_of
from sessions.actions.search.indexing import UNINDEXED
from sessions.api.record import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.problems import Refusal
from sessions.models import Archive, Session
from sessions.models.record.values import block_id, entry_name
from sessions.models.search.looked_up import Wanted
from sessions.models.search.search import (
    HITS,
    Hit,
    SearchPage,
    search,
    sessions_with,
)
from sessions.models.search.search_words import QUERY_CHARS, SearchQuery
from sessions.models.web.periods import read_time

WAITING = 1_000

FOUND = 500
"""Most hits of one session at once: the replay marks them all."""

LAST = 10**18

router = Router(tags=["Sessions"])

_Q = Query("", max_length=QUERY_CHARS, description='words; "quotes" keep words together')
_AFTER = Query(None, ge=-LAST, le=LAST, description="`next` of the previous page")
_LIMIT = Query(HITS, ge=1, le=HITS)


@router.get("search", response=shapes.SearchOut, url_name="search")
def search_all(
    request: HttpRequest,
    wanted: Query[shapes.SearchIn],
    after: int | None = _AFTER,
    limit: int = _LIMIT,
) -> HttpResponse:
    """Search in the text of every block, newest block first.

    Each word must occur in the block, as a whole word or as a part of a name like `readFile`.
    `state` says where the block is at the end of the session. `complete` is false if the deadline
    came before a page was full (`next` continues), or if text of `waiting` sessions is not in the
    index yet (ask again).
    """
    teams = teams_of(request)
    rows = sessions_with(
        teams,
        agent=wanted.agent,
        model=wanted.model,
        since=_time("since", wanted.since),
        until=_time("until", wanted.until),
        cost=None if wanted.cost is None else round(wanted.cost * 1_000_000),
        demo=wanted.demo,
    )
    of_blocks = Wanted(SearchQuery.of(wanted.q), wanted.tool, wanted.kind or "", wanted.error)
    # Counted before: what is indexed meanwhile may not be found.
    waiting = Session.objects.filter(UNINDEXED, team__in=teams)[:WAITING].count()
    found = search(teams, of_blocks, rows, state=wanted.state, after=after, each=limit, limit=limit)
    archived = Archive.objects.filter(session__team__in=teams).count()
    return json_answer(_answer(request, found, waiting, archived))


@router.get("sessions/{path:session_id}/search", response=shapes.SearchOut, url_name="find")
def find(
    request: HttpRequest,
    session_id: str,
    q: str = _Q,
    after: int | None = _AFTER,
    limit: int = Query(HITS, ge=1, le=FOUND),
) -> HttpResponse:
    """Search in one session, as `GET /search` does."""
    session = session_of(request, session_id)
    wanted = Wanted(SearchQuery.of(q))
    rows = Session.objects.filter(pk=session.pk)
    waiting = int(session.block_count > session.indexed_blocks)
    found = search([session.team], wanted, rows, after=after, each=limit, limit=limit)
    return json_answer(_answer(request, found, waiting))


def _time(name: str, text: str) -> int | None:
    if not text:
        return None
    at = read_time(text)
    if at is None or not 0 <= at < LAST:
        raise Refusal(422, "No such time", "Write it like 2026-11-30T13:00Z.", field=f"?{name}")
    return at


def _answer(
    request: HttpRequest, found: SearchPage, waiting: int, archived: int = 0
) -> dict[str, Any]:
    return {
        "hits": [_described(request, hit) for hit in found.hits],
        "next": found.after,
        "complete": not (found.stopped or waiting),
        "waiting": waiting,
        "archived": archived,
    }


def _described(request: HttpRequest, hit: Hit) -> dict[str, Any]:
    session, block = hit.session, hit.block
    step = max(1, min(hit.step, session.step_count or 1))
    replay = reverse("replay_step", args=[session.pk, step])
    entry = f"run={hit.run.origin}&m={hit.replacement}" if hit.replacement and hit.run else None
    return {
        "session": {
            "id": str(session.pk),
            "external_id": session.external_id,
            "title": session.title,
            "agent": session.agent,
            "model": session.model,
            "demo": session.demo,
        },
        "block": block_id(block.message.seq, block.index),
        "message": block.message.seq,
        "index": block.index,
        "step": hit.step,
        "kind": block.kind,
        "tool": block.tool,
        "error": block.error,
        "excerpt": [{"text": text, "matches": matches} for matches, text in hit.excerpt],
        "run": hit.run.origin if hit.run else "recorded",
        "replacement": bool(hit.replacement),
        "state": hit.presence.state,
        "state_since": hit.presence.step,
        "url": request.build_absolute_uri(f"{replay}?{entry or f'm={entry_name(block)}'}"),
    }
