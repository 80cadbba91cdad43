"""Recognition of stored sessions and messages, and of the point where a history diverges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from compaction.context.blocks import FileRef
from sessions.actions.record.prepare import PreparedMessage, ToolCall, column
from sessions.importers import records
from sessions.models import Block, Edit, Entry, Message, Run, Session, Team
from sessions.models.record.sessions import SOURCE_LIVE
from sessions.models.web.statements import StatementAmong, given_uuid

CHUNK = 400
"""Keys per query: below any database's limit on variables."""


class StoredMessage(NamedTuple):
    """A stored message, as far as needed for recognition."""

    seq: int
    key: str | None
    digest: str
    call: str


@dataclass(slots=True)
class KnownMessages:
    """Recognized messages of a batch.

    `stored` maps the index of a record to its stored message. A changed history diverges at the
    record `diverges_at`; the messages `gone` (seq) were there instead, or came after the end of a
    shorter history. `taken` are keys in use. `is_history` means that the batch is a whole history,
    whose first `shared` messages are stored. `left` are digests of those gone.
    """

    stored: dict[int, StoredMessage] = field(default_factory=dict)
    diverges_at: int | None = None
    gone: set[int] = field(default_factory=set)
    left: Counter[str] = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)
    is_history: bool = False
    shared: int = 0


def by_key(session: Session, prepared: Mapping[int, PreparedMessage]) -> KnownMessages:
    """Find messages stored under the same keys."""
    known = KnownMessages()
    keys = {index: one.record.key for index, one in prepared.items() if one.record.key is not None}
    wanted = list(keys.values())
    if not session.message_count or not wanted:
        return known
    found: dict[str | None, StoredMessage] = {}
    for start in range(0, len(wanted), CHUNK):
        rows = session.messages.filter(key__in=wanted[start : start + CHUNK])
        found |= {row[1]: StoredMessage(*row) for row in rows.values_list(*StoredMessage._fields)}
    known.stored = {index: found[key] for index, key in keys.items() if key in found}
    known.taken = {key for key in keys.values() if key in found}
    return known


def by_prefix(
    known: KnownMessages,
    prepared: Mapping[int, PreparedMessage],
    history: Sequence[StoredMessage],
    resent: Container[int] = (),
) -> KnownMessages:
    """Also match the beginning of a history with the stored one, by key or digest; stored messages
    (seq) that are `resent` stand where they stood."""
    place = 0
    for index, message in prepared.items():
        if place == len(history):
            break
        there = history[place]
        if is_stored_as(there, message) or there.seq in resent:
            known.stored[index] = there
            place += 1
            continue
        known.diverges_at = index
        known.gone = {stored.seq for stored in history[place:]}
        known.left = Counter(stored.digest for stored in history[place:])
        break
    return known


def is_stored_as(there: StoredMessage, message: PreparedMessage) -> bool:
    """Whether a stored message is this one, by key or digest."""
    same_key = there.key is not None and there.key == message.record.key
    return same_key or message.has_digest(there.digest)


def as_imported(session: Session, prepared: Mapping[int, PreparedMessage]) -> KnownMessages:
    """Recognize the messages of a log: by key first, then by prefix for those without."""
    unkeyed = {index: one for index, one in prepared.items() if one.record.key is None}
    history = standing_history(session, keyed=False) if unkeyed else []
    return by_prefix(by_key(session, prepared), unkeyed, history)


def standing_history(
    session: Session, *, keyed: bool, beside: Sequence[int] = ()
) -> list[StoredMessage]:
    """The messages of a session that no rewind or setup change removed, in order.

    Without `keyed` only those without a key; `beside` lists messages (seq) outside the
    conversation.
    """
    if not session.message_count:
        return []
    rows = session.messages.order_by("seq")
    if not keyed:
        rows = rows.filter(key=None)
    if beside:
        rows = rows.exclude(seq__in=beside)
    run = Run.objects.filter(session=session, origin=Run.Origin.RECORDED)
    ended = Entry.objects.filter(run__in=run, closed_by__strategy__in=Edit.LEFT)
    left = Message.objects.filter(session=session, blocks__entries__in=ended)
    gone = set(left.values_list("seq", flat=True))
    return [
        StoredMessage(*row)
        for row in rows.values_list(*StoredMessage._fields).iterator()
        if row[0] not in gone
    ]


def stored_session(
    team: Team, incoming: records.Session, prepared: Mapping[int, PreparedMessage]
) -> tuple[Session | None, str]:
    """The stored session that a log continues, if any, and its external id from now on.

    Sessions named by their files may share a name: such a log continues the one that begins alike,
    also under a former name, or else gets a number of its own.
    """
    stored = Session.objects.for_team(team)
    named = incoming.external_id
    if not incoming.former_ids:
        return stored.filter(external_id=named).first(), named
    opening = _opening(prepared)
    keyed = any(message.record.key is not None for message in opening.values())
    for number in count(1):
        free = named if number == 1 else f"{named}.{number}"
        found = stored.filter(external_id=free).first()
        if found is None:
            break
        # Without keys, a history that changed from its first message on is a rewind.
        if not keyed or _begins_with(found, opening):
            return found, free
    # An agent keeps the id that it sends with each append.
    for former in stored.filter(external_id__in=incoming.former_ids).exclude(source=SOURCE_LIVE):
        if _begins_with(former, opening):
            return former, free
    return None, free


def _opening(prepared: Mapping[int, PreparedMessage]) -> dict[int, PreparedMessage]:
    """The messages up to and including the first response."""
    opening: dict[int, PreparedMessage] = {}
    for index, message in prepared.items():
        opening[index] = message
        if message.record.role == "assistant":
            break
    return opening


def _begins_with(session: Session, opening: Mapping[int, PreparedMessage]) -> bool:
    known = as_imported(session, opening).stored
    return bool(known) and all(opening[at].has_digest(it.digest) for at, it in known.items())


def stored_tool_calls(session: Session, asked: Sequence[str]) -> dict[str, ToolCall]:
    """The stored tool calls of a session among these ids."""
    ids = {column(one, 200): one for one in asked}
    rows = _TOOL_CALLS.rows(list(ids), session=session.pk)
    # Sorted here: asked to sort, SQLite reads the whole session in that order.
    rows.sort(key=lambda row: row.position)
    return {ids[row.tool_call]: ToolCall(row.tool, row.preview, _file(row)) for row in rows}


_TOOL_CALLS = StatementAmong(
    lambda ids: Block.objects.filter(
        session_id=given_uuid("session"), type="tool_use", tool_call__in=ids
    )
)


def _file(row: Block) -> FileRef | None:
    if not row.file_path:
        return None
    action: Any = row.file_action
    return FileRef(row.file_path, action, row.file_start, row.file_end)
