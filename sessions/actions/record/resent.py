"""Stored replies that an agent sends back in another form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from compaction.context import wire
from compaction.context.resent import folders_in, is_resent
from sessions.actions.record.known import StoredMessage, is_stored_as
from sessions.actions.record.prepare import PreparedMessage
from sessions.models import Block, Session
from sessions.models.record.values import readable
from sessions.models.web.statements import StatementAmong, given_int, given_uuid


def resent_replies(
    session: Session,
    sent: Iterable[PreparedMessage],
    history: Sequence[StoredMessage],
    setup: Iterable[PreparedMessage],
) -> set[int]:
    """The stored replies (seq) that a history repeats in another form. Its `setup` may state the
    folder that commands run in.

    Looks up to the first message that cannot be one.
    """
    found: dict[int, PreparedMessage] = {}
    for there, message in zip(history, sent, strict=False):
        if is_stored_as(there, message):
            continue
        if message.record.role != "assistant":
            break
        found[there.seq] = message
    if not found:
        return set()
    said = _contents(session, list(found))
    folders = folders_in(block for one in setup for block in one.record.blocks)
    return {seq for seq, blocks in said.items() if _is_resent(blocks, found[seq], folders)}


def _is_resent(
    said: Sequence[wire.WireBlock], message: PreparedMessage, folders: frozenset[str]
) -> bool:
    forms = (message.record, *message.before())
    return any(is_resent(said, one.blocks, folders) for one in forms)


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
