"""Boards, shares, and subscriptions."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Query, Router

from sessions.access import actor_of, find_session, require, session_of, teams_of
from sessions.actions.memory import boards, gathering, shares
from sessions.api.memory import shapes as board_shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import Delivery, Note, Session, Share, Subscription

ROWS_AT_ONCE = 200
LONGEST_NUMBER = 9_007_199_254_740_991

router = Router(tags=["Memory"])


def _page(rows: QuerySet[Any], cursor: str, limit: int, *, newest: bool) -> tuple[list[Any], Any]:
    """A page of rows by primary key, and the cursor of the next page or None."""
    if cursor:
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
            raise Refusal(
                422, "No such cursor", "Use `next` of the previous page.", field="?cursor"
            )
        rows = rows.filter(**{"pk__lt" if newest else "pk__gt": int(cursor)})
    found = list(rows.order_by("-pk" if newest else "pk")[: limit + 1])
    more = len(found) > limit
    return found[:limit], str(found[limit - 1].pk) if more else None


def describe_note(row: Note) -> dict[str, Any]:
    """A note as JSON."""
    return {
        "id": row.pk,
        "kind": row.kind,
        "key": row.key,
        "text": row.text,
        "agent": row.agent,
        "task": row.task,
        "at": row.at,
        "by": row.by,
        "session": str(row.session_id) if row.session_id else None,
        "message": row.message,
        "share": row.share_id,
        "untrusted": row.untrusted,
        "stale": row.stale,
        "files": row.files,
        "evidence": sum(row.evidence.values()),
    }


@router.get("sessions/{path:session_id}/notes", response=board_shapes.BoardOut, url_name="notes")
def notes(
    request: HttpRequest,
    session_id: str,
    cursor: str = Query("", description="`next` of the previous page"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
    kind: board_shapes.Kind | None = Query(None, description="only this kind"),
) -> HttpResponse:
    """Get the board of a session: its task's, shared by its agents, or its own."""
    session = session_of(request, session_id)
    gathering.gather(session)
    board = boards.board_of(session)
    rows = board.notes.filter(removed=None)
    shown, following = _page(rows.filter(kind=kind) if kind else rows, cursor, limit, newest=False)
    made = boards.rendered(session, board)
    return json_answer(
        {
            "kind": board.kind,
            "name": board.name,
            "entries": rows.count(),
            "notes": [describe_note(row) for row in shown],
            "next": following,
            "xml": made.text,
            "tokens": made.tokens,
            "included": len(made.kept),
        }
    )


@router.post(
    "sessions/{path:session_id}/notes",
    response={200: board_shapes.NoteOut, 201: board_shapes.NoteOut},
    url_name="notes",
)
@done_once
def put_note(request: HttpRequest, session_id: str, wanted: board_shapes.NoteIn) -> HttpResponse:
    """Add a note to the board (201), or replace the one with its key (200)."""
    session = session_of(request, session_id)
    try:
        row, created = boards.put_note(
            session,
            wanted.kind,
            wanted.text,
            key=wanted.key,
            files=wanted.files,
            actor=actor_of(request),
        )
    except boards.CannotNote as error:
        raise Refusal(422, "Not acceptable", f"{error}.", field=error.field) from None
    return json_answer(describe_note(row), 201 if created else 200)


@router.delete("sessions/{path:session_id}/notes/{note_id}", response=dict, url_name="note")
@done_once
def remove_note(
    request: HttpRequest, session_id: str, note_id: int = Path(..., ge=1, le=LONGEST_NUMBER)
) -> HttpResponse:
    """Remove a note; code does not add it back."""
    session = session_of(request, session_id)
    board = boards.board_of(session)
    row = board.notes.filter(pk=note_id, removed=None).select_related("board__team").first()
    if row is None:
        raise Http404("no such note")
    boards.remove(row, actor_of(request))
    return json_answer({})


# Shares and subscriptions


def describe_share(row: Share) -> dict[str, Any]:
    """A share as JSON; `delivered` is an annotation."""
    return {
        "id": row.pk,
        "session": row.session.external_id,
        "version": row.number,
        "cause": row.cause,
        "agent": row.agent,
        "task": row.task,
        "step": row.step,
        "summary": row.summary,
        "board": row.board,
        "results": row.refs,
        "files": row.files,
        "masked": row.masked,
        "delivered": getattr(row, "delivered", 0),
        "sent": row.sent.isoformat() if row.sent else None,
        "created": row.created.isoformat(),
    }


@router.get("sessions/{path:session_id}/shares", response=board_shapes.ShareList, url_name="shares")
def list_shares(
    request: HttpRequest,
    session_id: str,
    cursor: str = Query("", description="`next` of the previous page"),
    limit: int = Query(20, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List the shares of a session, with the newest 20 it received."""
    session = session_of(request, session_id)
    rows = Share.objects.select_related("session").annotate(delivered=Count("deliveries"))
    shown, following = _page(rows.filter(session=session), cursor, limit, newest=True)
    came = Delivery.objects.filter(session=session, share__team=session.team)
    # Count all deliveries of a share, not only the one to this session.
    received = rows.filter(pk__in=came.values("share")).order_by("-pk")[:20]
    return json_answer(
        {
            "shares": [describe_share(row) for row in shown],
            "received": [describe_share(row) for row in received],
            "next": following,
        }
    )


@router.post(
    "sessions/{path:session_id}/shares",
    response={200: board_shapes.ShareOut, 201: board_shapes.ShareOut},
    url_name="shares",
)
@done_once
def share(request: HttpRequest, session_id: str, wanted: board_shapes.ShareIn) -> HttpResponse:
    """Share what a session knows now with all subscribers (201); a known key is shared only once
    (200).

    Sessions share automatically when their task is done and when their context is compacted.
    """
    session = session_of(request, session_id)
    gathering.gather(session)
    key = f"hand:{wanted.key}" if wanted.key else f"hand:{session.version}:{session.step_count}"
    row, created = shares.share(
        session, key, Share.Cause.BY_HAND, summary=wanted.summary, actor=actor_of(request)
    )
    return json_answer(describe_share(row), 201 if created else 200)


def describe_subscription(row: Subscription) -> dict[str, Any]:
    """A subscription as JSON."""
    return {
        "id": row.pk,
        "session": row.session.external_id,
        "kind": row.kind,
        "value": row.value,
        "created": row.created.isoformat(),
    }


@router.get("subscriptions", response=board_shapes.SubscriptionList, url_name="subscriptions")
def list_subscriptions(
    request: HttpRequest,
    session: str = Query("", max_length=300, description="only of this session"),
    cursor: str = Query("", description="`next` of the previous page"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List subscriptions."""
    rows = Subscription.objects.filter(session__team__in=teams_of(request))
    if session:
        rows = rows.filter(session=named_session(request, session, "?session"))
    shown, following = _page(rows.select_related("session"), cursor, limit, newest=True)
    return json_answer(
        {"subscriptions": [describe_subscription(row) for row in shown], "next": following}
    )


@router.post(
    "subscriptions", response={201: board_shapes.SubscriptionOut}, url_name="subscriptions"
)
@done_once
def subscribe(request: HttpRequest, wanted: board_shapes.SubscriptionIn) -> HttpResponse:
    """Subscribe a session to future shares of an agent, a task, or its team.

    Shares arrive as knowledge on its board and at the end of its context. Repeating the request
    returns the same subscription.
    """
    session = named_session(request, wanted.session, "/session")
    require(request, session.team, "write")
    try:
        row = shares.subscribe(session, wanted.kind, wanted.value, actor_of(request))
    except shares.CannotSubscribe as error:
        raise Refusal(422, "Not acceptable", f"{error}.", field=error.field) from None
    return json_answer(describe_subscription(row), 201)


@router.delete("subscriptions/{subscription_id}", response=dict, url_name="subscription")
@done_once
def unsubscribe(
    request: HttpRequest, subscription_id: int = Path(..., ge=1, le=LONGEST_NUMBER)
) -> HttpResponse:
    """End a subscription; notes already received stay."""
    rows = Subscription.objects.filter(session__team__in=teams_of(request))
    row = rows.filter(pk=subscription_id).select_related("session__team").first()
    if row is None:
        raise Http404("no such subscription")
    require(request, row.session.team, "write")
    shares.unsubscribe(row, actor_of(request))
    return json_answer({})


def named_session(request: HttpRequest, name: str, field: str) -> Session:
    """The session named by a field. Raises Refusal."""
    found = find_session(request, name)
    if found is None:
        raise Refusal(422, "Not acceptable", "There is no such session. Check the id.", field=field)
    return found
