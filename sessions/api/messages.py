"""Messages in, messages out, and the real usage of model calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction import wire
from sessions.actions.deliver import AnotherRequest, deliver, delivery, report_call
from sessions.actions.live_sessions import SessionFields, put_session
from sessions.api import incoming, shapes
from sessions.api.access import find_session, require, session_of, team_to
from sessions.api.answers import AGAIN, another_request, done_once, once_of, told
from sessions.api.bodies import value_of
from sessions.api.sessions import own_id
from sessions.models import Block, Message, Session
from sessions.models.values import contents

ROWS_AT_ONCE = 500
BYTES_AT_ONCE = 8 * 1024 * 1024
"""Of content in one page of messages; a page has one message at least."""

MADE = "There was no session of this id: it was made."

router = Router(tags=["Messages"])


@router.post(
    "sessions/{path:session_id}/messages", response={201: shapes.Delivered}, url_name="messages"
)
def append(
    request: HttpRequest,
    session_id: str,
    wanted: incoming.MessagesWanted,
) -> HttpResponse:
    """Stores a batch of messages: all of it, and for good once this answers, or nothing.

    Messages go in as the provider takes and gives them. A batch that begins with messages which
    are stored already adds only what is new. Heed `advice.delay_ms`.
    """
    batch = delivery(value_of(request))
    once = once_of(request)
    found, notes = find_session(request, session_id), []
    if found is not None:
        require(request, found.team, "write")
    else:
        found, created = _begun(request, session_id)
        notes = [MADE] if created else []
    try:
        done = deliver(found, batch, once=once, notes=notes)
    except AnotherRequest as error:
        raise another_request(error) from None
    return told(done.answer, 201, AGAIN if done.again else None)


def _begun(request: HttpRequest, name: str) -> tuple[Session, bool]:
    return put_session(team_to(request, "write"), own_id(request, name), SessionFields())


@router.get("sessions/{path:session_id}/messages", response=shapes.MessageList, url_name="messages")
def messages(
    request: HttpRequest,
    session_id: str,
    after: int = Query(0, ge=0, le=incoming.BIGGEST, description="`next` of the page before"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """Lists stored messages in order, with their content as it came.

    A page ends early where it would hold more than 8 MB.
    """
    session = session_of(request, session_id)
    rows = list(session.messages.filter(seq__gt=after).order_by("seq")[:limit])
    blocks = _fitting(session, rows)
    shown = [row for row in rows if row.pk in blocks]
    shas = [block.sha for row in shown for block in blocks[row.pk]]
    data = contents(session, shas)
    more = bool(shown) and shown[-1].seq < session.message_count
    return told(
        {
            "messages": [_message_told(session, row, blocks[row.pk], data) for row in shown],
            "next": shown[-1].seq if more else None,
        }
    )


def _fitting(session: Session, rows: Sequence[Message]) -> dict[int, list[Block]]:
    """The blocks of the first messages that together have no more than BYTES_AT_ONCE."""
    found: dict[int, list[Block]] = {row.pk: [] for row in rows}
    for block in session.blocks.filter(message__in=rows).order_by("position"):
        found[block.message_id].append(block)
    size = 0
    for number, row in enumerate(rows):
        size += sum(block.bytes for block in found[row.pk])
        if size > BYTES_AT_ONCE and number:
            return {kept.pk: found[kept.pk] for kept in rows[:number]}
    return found


def _message_told(
    session: Session, row: Message, blocks: Sequence[Block], data: dict[str, bytes]
) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "id": row.key,
        "role": row.role,
        "call": row.call or None,
        "step": row.born,
        "turn": row.turn,
        "at": row.at,
        "human": row.human,
        "late": row.late,
        "content": [wire.decode(data[block.sha]) for block in blocks],
        "blocks": [
            {
                "kind": block.kind,
                "tokens": session.scaled(block.tokens),
                "estimated": block.estimated,
                "sha": block.sha,
            }
            for block in blocks
        ],
    }


@router.post("sessions/{path:session_id}/calls", response=shapes.CallTold, url_name="calls")
@done_once
def calls(
    request: HttpRequest,
    session_id: str,
    wanted: incoming.CallWanted,
) -> HttpResponse:
    """Takes the real usage of a model call, as the provider reported it; late is fine.

    The call is found by its id, its step or the context that it was sent with; without any of
    these it is the newest.
    """
    call = report_call(session_of(request, session_id), value_of(request))
    usage = {
        "fresh": call.fresh,
        "cache_read": call.cache_read,
        "cache_write_5m": call.cache_write_5m,
        "cache_write_1h": call.cache_write_1h,
        "output": call.output,
        "reasoning": call.reasoning,
    }
    parts = [call.fresh, call.cache_read, call.cache_write_5m, call.cache_write_1h]
    known = [part for part in parts if part is not None]
    usage["total"] = sum(known) if known else None
    return told(
        {
            "step": call.step,
            "usage": usage,
            "reconciles": call.reconciles,
            "cost_microusd": call.cost_microusd,
        }
    )
