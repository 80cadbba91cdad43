"""Stored replies that an agent sends back as its program completed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from compaction.context import wire
from compaction.context.resent import is_resent
from sessions.actions.record.known import StoredMessage, is_stored_as
from sessions.actions.record.prepare import PreparedMessage
from sessions.models import Block, Session
from sessions.models.record.values import readable
from sessions.models.web.statements import StatementAmong, given_int, given_uuid


def resent_replies(
    session: Session, sent: Iterable[PreparedMessage], history: Sequence[StoredMessage]
) -> set[int]:
    """The stored messages (seq) that a history repeats in other words for the same calls.

    Looks up to the first message that cannot be one.
    """
    found: dict[int, PreparedMessage] = {}
    for there, message in zip(history, sent, strict=False):
        if is_stored_as(there, message):
            continue
        if not _has_calls(message):
            break
        found[there.seq] = message
    said = _contents(session, list(found)) if found else {}
    return {seq for seq, one in found.items() if is_resent(said.get(seq, ()), one.record.blocks)}


def _has_calls(message: PreparedMessage) -> bool:
    record = message.record
    return record.role == "assistant" and any(
        one.get("type") == "tool_use" for one in record.blocks
    )


def _contents(session: Session, seqs: list[int]) -> dict[int, list[wire.WireBlock]]:
    """The blocks of assistant messages; a message with content that is not readable is left out."""
    rows = sorted(_BLOCKS.rows(seqs, session=session.pk))
    data = readable(session.team_id, [sha for _, _, sha in rows])
    made: dict[int, list[wire.WireBlock]] = defaultdict(list)
    for seq, _, sha in rows:
        if sha in data:
            made[seq].append(wire.decode(data[sha]))
    return made


_BLOCKS = StatementAmong(
    lambda seqs: Block.objects.filter(
        session_id=given_uuid("session"), message__role="assistant", message__seq__in=seqs
    ).values_list("message__seq", "index", "sha"),
    given_int,
)
