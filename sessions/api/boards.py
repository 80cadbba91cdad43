"""Boards, what sessions share, and who subscribed to it."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Query, Router

from sessions.actions import boards, gathering, shares
from sessions.api import board_shapes
from sessions.api.access import actor_of, find_session, require, session_of, teams_of
from sessions.api.answers import done_once, told
from sessions.api.problems import Refusal
from sessions.models import Anchor, Delivery, Session, Share, Subscription

ROWS_AT_ONCE = 200
LONGEST_NUMBER = 9_007_199_254_740_991

router = Router(tags=["Memory"])


def _page(rows: QuerySet[Any], cursor: str, limit: int, *, newest: bool) -> tuple[list[Any], Any]:
    """Some rows by their number, and the cursor of what follows, or None."""
    if cursor:
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
            raise Refusal(
                422, "No such cursor", "Take it from `next` of the page before.", field="?cursor"
            )
        rows = rows.filter(**{"pk__lt" if newest else "pk__gt": int(cursor)})
    found = list(rows.order_by("-pk" if newest else "pk")[: limit + 1])
    more = len(found) > limit
    return found[:limit], str(found[limit - 1].pk) if more else None


def anchor_told(row: Anchor) -> dict[str, Any]:
    """An entry of a board as the API tells it."""
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


@router.get(
    "sessions/{path:session_id}/anchors", response=board_shapes.BoardTold, url_name="anchors"
)
def anchors(
    request: HttpRequest,
    session_id: str,
    cursor: str = Query("", description="`next` of the page before"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
    kind: board_shapes.Kind | None = Query(None, description="only these"),
) -> HttpResponse:
    """Gives the board of a session: of its task, which its agents share, or its own."""
    session = session_of(request, session_id)
    gathering.gather(session)
    board = boards.board_of(session)
    rows = board.anchors.filter(removed=None)
    shown, following = _page(rows.filter(kind=kind) if kind else rows, cursor, limit, newest=False)
    made = boards.rendered(session, board)
    return told(
        {
            "kind": board.kind,
            "name": board.name,
            "entries": rows.count(),
            "anchors": [anchor_told(row) for row in shown],
            "next": following,
            "xml": made.text,
            "tokens": made.tokens,
            "told": len(made.kept),
        }
    )


@router.post(
    "sessions/{path:session_id}/anchors",
    response={200: board_shapes.AnchorTold, 201: board_shapes.AnchorTold},
    url_name="anchors",
)
@done_once
def put_anchor(
    request: HttpRequest, session_id: str, wanted: board_shapes.AnchorWanted
) -> HttpResponse:
    """Puts an entry on the board (201), or in the place of the one with its key (200)."""
    session = session_of(request, session_id)
    try:
        row, created = boards.anchor(
            session,
            wanted.kind,
            wanted.text,
            key=wanted.key,
            files=wanted.files,
            actor=actor_of(request),
        )
    except boards.CannotAnchor as error:
        raise Refusal(422, "Not acceptable", f"{error}.", field=error.field) from None
    return told(anchor_told(row), 201 if created else 200)


@router.delete("sessions/{path:session_id}/anchors/{anchor_id}", response=dict, url_name="anchor")
@done_once
def remove_anchor(
    request: HttpRequest, session_id: str, anchor_id: int = Path(..., ge=1, le=LONGEST_NUMBER)
) -> HttpResponse:
    """Takes an entry off the board; it does not come back by itself."""
    session = session_of(request, session_id)
    board = boards.board_of(session)
    row = board.anchors.filter(pk=anchor_id, removed=None).select_related("board__team").first()
    if row is None:
        raise Http404("no such entry")
    boards.remove(row, actor_of(request))
    return told({})


# Shares and subscriptions


def share_told(row: Share) -> dict[str, Any]:
    """A share as the API tells it; `delivered` is an annotation."""
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
    cursor: str = Query("", description="`next` of the page before"),
    limit: int = Query(20, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """Lists what a session shared, and the newest 20 shares that came to it."""
    session = session_of(request, session_id)
    rows = Share.objects.select_related("session").annotate(delivered=Count("deliveries"))
    shown, following = _page(rows.filter(session=session), cursor, limit, newest=True)
    came = Delivery.objects.filter(session=session, share__team=session.team)
    # Counted of the share, not of what came here alone.
    received = rows.filter(pk__in=came.values("share")).order_by("-pk")[:20]
    return told(
        {
            "shares": [share_told(row) for row in shown],
            "received": [share_told(row) for row in received],
            "next": following,
        }
    )


@router.post(
    "sessions/{path:session_id}/shares",
    response={200: board_shapes.ShareTold, 201: board_shapes.ShareTold},
    url_name="shares",
)
@done_once
def share(request: HttpRequest, session_id: str, wanted: board_shapes.ShareWanted) -> HttpResponse:
    """Shares what a session knows now with all that subscribed (201); under a known key once (200).

    Sessions do so by themselves when their task is done, and when their context was compacted.
    """
    session = session_of(request, session_id)
    gathering.gather(session)
    key = f"hand:{wanted.key}" if wanted.key else f"hand:{session.version}:{session.step_count}"
    row, created = shares.share(
        session, key, Share.Cause.BY_HAND, summary=wanted.summary, actor=actor_of(request)
    )
    return told(share_told(row), 201 if created else 200)


def subscription_told(row: Subscription) -> dict[str, Any]:
    """A subscription as the API tells it."""
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
    session: str = Query("", max_length=300, description="only those of this session"),
    cursor: str = Query("", description="`next` of the page before"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """Lists who subscribed to what."""
    rows = Subscription.objects.filter(session__team__in=teams_of(request))
    if session:
        rows = rows.filter(session=named_session(request, session, "?session"))
    shown, following = _page(rows.select_related("session"), cursor, limit, newest=True)
    return told({"subscriptions": [subscription_told(row) for row in shown], "next": following})


@router.post(
    "subscriptions", response={201: board_shapes.SubscriptionTold}, url_name="subscriptions"
)
@done_once
def subscribe(request: HttpRequest, wanted: board_shapes.SubscriptionWanted) -> HttpResponse:
    """Lets a session have what is shared from now on by an agent, in a task, or in its team.

    It comes as knowledge on its board, and at the end of its context. Asked twice it is the same
    subscription.
    """
    session = named_session(request, wanted.session, "/session")
    require(request, session.team, "write")
    try:
        row = shares.subscribe(session, wanted.kind, wanted.value, actor_of(request))
    except shares.CannotSubscribe as error:
        raise Refusal(422, "Not acceptable", f"{error}.", field=error.field) from None
    return told(subscription_told(row), 201)


@router.delete("subscriptions/{subscription_id}", response=dict, url_name="subscription")
@done_once
def unsubscribe(
    request: HttpRequest, subscription_id: int = Path(..., ge=1, le=LONGEST_NUMBER)
) -> HttpResponse:
    """Ends a subscription; what came with it stays."""
    rows = Subscription.objects.filter(session__team__in=teams_of(request))
    row = rows.filter(pk=subscription_id).select_related("session__team").first()
    if row is None:
        raise Http404("no such subscription")
    require(request, row.session.team, "write")
    shares.unsubscribe(row, actor_of(request))
    return told({})


def named_session(request: HttpRequest, name: str, field: str) -> Session:
    """The session that a field names. Raises Refusal."""
    found = find_session(request, name)
    if found is None:
        raise Refusal(422, "Not acceptable", "There is no such session.", field=field)
    return found
