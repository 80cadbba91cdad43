"""Results that came without the id of their call, as SDKs of Gemini send them.

Within a request the reader matches them; here those whose calls are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from sessions.importers.delivered.delivered import Batch
from sessions.models import Block, Session
from sessions.models.web.statements import Statement, given_int, given_uuid

_RECENT = 8
"""Messages in which a turn has its calls: each part of a streamed answer may be a message."""


def name_results(session: Session, batch: Batch, unknown: Sequence[str]) -> list[str]:
    """Give results the ids of the open calls of their functions; return these ids.

    `unknown` are the ids in the batch that no call has: names of functions, with a number if there
    are several.
    """
    calls = _open_calls(session)
    found: dict[object, str] = {}
    for id in unknown:
        name = id.partition("#")[0]
        if call := next((call for tool, call in calls if tool == name), ""):
            calls.remove((name, call))
            found[id] = call
    for message in takewhile(lambda one: one.role != "assistant", batch.messages):
        for block in message.blocks:
            if block.get("type") == "tool_result" and block.get("tool_use_id") in found:
                block["tool_use_id"] = found[block["tool_use_id"]]
    return list(found.values())


def _open_calls(session: Session) -> list[tuple[str, str]]:
    """Tool and id of the newest calls without a result, oldest first."""
    rows = _NEWEST.rows(session=session.pk, after=max(session.message_count - _RECENT, 0))
    rows.sort(key=lambda row: row.position)
    answered = {row.tool_call for row in rows if row.type == "tool_result"}
    return [
        (row.tool, row.tool_call)
        for row in rows
        if row.type == "tool_use" and row.tool_call not in answered
    ]


_NEWEST = Statement(
    lambda: Block.objects.filter(
        session_id=given_uuid("session"),
        message__seq__gt=given_int("after"),
        type__in=("tool_use", "tool_result"),
    )
)
