"""Messages: append and list, and usage reports of model calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.context import wire
from compaction.context.iterations import unpacked
from compaction.context.session import Usage
from sessions.access import find_session, require, session_of, team_to
from sessions.actions.live.deliver import AnotherRequest, deliver, delivery, report_call
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.api.live import shapes
from sessions.api.record.sessions import own_id
from sessions.api.web.exchange import json_answer, value_of
from sessions.api.web.once import AGAIN, another_request, done_once, once_of
from sessions.api.web.shapes import BIGGEST
from sessions.models import Block, Message, ModelCall, Session
from sessions.models.record.values import contents

ROWS_AT_ONCE = 500
BYTES_AT_ONCE = 8 * 1024 * 1024
"""Maximum content of a page of messages, in bytes; a page has at least one message."""

MADE = "The session did not exist and was created."

router = Router(tags=["Messages"])


@router.post(
    "sessions/{path:session_id}/messages", response={201: shapes.DeliveredOut}, url_name="messages"
)
def append(
    request: HttpRequest,
    session_id: str,
    wanted: shapes.MessagesIn,
) -> HttpResponse:
    """Append a batch of messages; all or nothing is stored, durably before the response.

    Messages are accepted in the provider's format. If the batch begins with stored messages, only
    new ones are added. Respect `advice.delay_ms`.
    """
    batch = delivery(value_of(request))
    once = once_of(request)
    found, notes = find_session(request, session_id), []
    if found is not None:
        require(request, found.team, "write")
    else:
        found, created = begun(request, session_id)
        notes = [MADE] if created else []
    try:
        done = deliver(found, batch, once=once, notes=notes)
    except AnotherRequest as error:
        raise another_request(error) from None
    return json_answer(done.answer, 201, AGAIN if done.again else None)


def begun(request: HttpRequest, name: str) -> tuple[Session, bool]:
    """The session with that external id, and whether it was created just now."""
    return put_session(team_to(request, "write"), own_id(request, name), SessionFields())


@router.get("sessions/{path:session_id}/messages", response=shapes.MessageList, url_name="messages")
def messages(
    request: HttpRequest,
    session_id: str,
    after: int = Query(0, ge=0, le=BIGGEST, description="`next` of the previous page"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
    tool: str = Query("", max_length=120, description="only around calls of this tool"),
) -> HttpResponse:
    """List stored messages in order, with their original content.

    A page ends early at 8 MB. With `tool`: only messages that call it, each with the message before
    and the two after, system messages left out.
    """
    session = session_of(request, session_id)
    found = session.messages.filter(seq__gt=after)
    if tool:
        found = found.filter(seq__in=_around(session, tool, after, limit + 1))
    listed = list(found.order_by("seq")[: limit + 1])
    rows = listed[:limit]
    blocks = _fitting(session, rows)
    shown = [row for row in rows if row.pk in blocks]
    shas = [block.sha for row in shown for block in blocks[row.pk]]
    data = contents(session, shas)
    more = len(shown) < len(listed)
    return json_answer(
        {
            "messages": [_describe_message(session, row, blocks[row.pk], data) for row in shown],
            "next": shown[-1].seq if more else None,
        }
    )


def _around(session: Session, tool: str, after: int, most: int) -> list[int]:
    """The numbers of the first messages after one that call a tool or are next to such a call."""
    calls = session.blocks.filter(type="tool_use", tool=tool).values_list("message__seq", flat=True)
    calling = set(calls)
    if not calling:
        return []
    talk = session.messages.exclude(role="system").order_by("seq").values_list("seq", flat=True)
    numbers = list(talk)
    places = {
        near
        for place, seq in enumerate(numbers)
        if seq in calling
        for near in range(place - 1, place + 3)
    }
    near = (numbers[place] for place in sorted(places) if 0 <= place < len(numbers))
    return [seq for seq in near if seq > after][:most]


def _fitting(session: Session, rows: Sequence[Message]) -> dict[int, list[Block]]:
    """The blocks of the first messages that together fit into BYTES_AT_ONCE."""
    found: dict[int, list[Block]] = {row.pk: [] for row in rows}
    for block in session.blocks.filter(message__in=rows).order_by("position"):
        found[block.message_id].append(block)
    size = 0
    for number, row in enumerate(rows):
        size += sum(block.bytes for block in found[row.pk])
        if size > BYTES_AT_ONCE and number:
            return {kept.pk: found[kept.pk] for kept in rows[:number]}
    return found


def _describe_message(
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


@router.post("sessions/{path:session_id}/calls", response=shapes.CallOut, url_name="calls")
@done_once
def calls(
    request: HttpRequest,
    session_id: str,
    wanted: shapes.CallIn,
) -> HttpResponse:
    """Report the usage of a model call, as the provider returned it; may arrive late.

    The call is found by id, step or context; without these it is the newest. If the response took
    several requests, `usage.iterations` lists the usage of each, with the `model` if it is another:
    the prompt is then that of the model's own largest one, and the cost that of all.
    """
    call = report_call(session_of(request, session_id), value_of(request))
    return json_answer(
        {
            "step": call.step,
            "usage": _usage(call),
            "iterations": [
                {"model": one.model or None, "usage": _usage(one.usage)}
                for one in unpacked(call.iterations)
            ],
            "reconciles": call.reconciles,
            "cost_microusd": call.cost_microusd,
        }
    )


def _usage(of: ModelCall | Usage) -> dict[str, int | None]:
    parts = {name: getattr(of, name) for name in _PROMPT}
    known = [part for part in parts.values() if part is not None]
    total = sum(known) if known else None
    return {**parts, "output": of.output, "reasoning": of.reasoning, "total": total}


_PROMPT = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h")
