"""Conversion of rows to engine values; the only bridge from the store to the engine."""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from django.http import Http404

from compaction.context import blocks as context
from compaction.context import session as recorded
from compaction.context import wire
from sessions.models.record import objects
from sessions.models.record.blobs import Blob, DamagedBlob
from sessions.models.record.messages import Block
from sessions.models.record.model_calls import calls_of
from sessions.models.record.revisions import Edit
from sessions.models.record.sessions import Session
from sessions.models.web import shown
from sessions.models.web.statements import Statement, StatementAmong, given_int, given_uuid

CHUNK = 400
"""Blobs per query: below SQLite's limit on variables."""


class MissingBlob(Exception):
    """A block's bytes are missing from the store."""


class ContentErased(MissingBlob, Http404):
    """The content of the session was erased; its figures are still there."""

    def __init__(self, session: Session) -> None:
        assert session.content_erased is not None
        day = session.content_erased.date()
        super().__init__(
            f"The content of this session was erased on {day:%b} {day.day}, {day.year} "
            "(retention). Its figures remain."
        )


def contents(session: Session, shas: list[str]) -> dict[str, bytes]:
    """Read and verify blobs of the session's team. Raises MissingBlob, ContentErased,
    DamagedBlob."""
    if shas and session.content_erased is not None:
        raise ContentErased(session)
    rows = stored_forms(_BLOBS.rows(shas, team=session.team_id))
    found = {sha: content_of(sha, packed, stored) for sha, packed, stored in rows}
    if missing := [sha for sha in dict.fromkeys(shas) if sha not in found]:
        raise MissingBlob(
            f"{len(missing)} blobs are missing from the store, first {missing[0]}. "
            "Restore them from a backup."
        )
    return shown.contents(session.team_id, found)


def readable(team: UUID, shas: list[str]) -> dict[str, bytes]:
    """As `contents` of a team's blobs; missing and damaged ones are left out."""
    found: dict[str, bytes] = {}
    for sha, packed, stored in stored_forms(_BLOBS.rows(shas, team=team)):
        with contextlib.suppress(DamagedBlob):
            found[sha] = content_of(sha, packed, stored)
    return shown.contents(team, found)


_BLOBS = StatementAmong(
    lambda shas: Blob.objects.filter(team_id=given_uuid("team"), sha__in=shas).values_list(
        "sha", "packed", "data", "object_name"
    )
)


def stored_forms(
    rows: Iterable[tuple[str, bool, bytes | memoryview, str]], *, cached: bool = True
) -> Iterator[tuple[str, bool, bytes | memoryview]]:
    """Hash, whether it is compressed, and bytes of blobs, wherever these are, from the columns
    (sha, packed, data, object_name); blobs whose object is missing are left out. Raises
    ObjectsAway."""
    listed = list(rows)
    placed = objects.read((name for *_, name in listed if name), cached=cached)
    for sha, packed, data, name in listed:
        if not name or name in placed:
            yield sha, packed, placed[name] if name else data


def content_of(sha: str, packed: bool, stored: bytes | memoryview) -> bytes:
    """The bytes of a blob as received. Raises DamagedBlob if they do not match their SHA-256."""
    data = bytes(stored)
    try:
        data = zlib.decompress(data) if packed else data
    except zlib.error as error:
        raise DamagedBlob(
            f"Blob {sha} cannot be decompressed: {error}. Restore it from a backup."
        ) from error
    if hashlib.sha256(data).hexdigest() != sha:
        raise DamagedBlob(f"Blob {sha} no longer matches its SHA-256. Restore it from a backup.")
    return data


def wire_blocks(session: Session, blocks: Iterable[context.Block]) -> dict[str, wire.WireBlock]:
    """The wire form of blocks by id.

    Originals are the stored bytes, verified. Replacements are built from their text. Raises
    MissingBlob, DamagedBlob.
    """
    listed = list(blocks)
    data = contents(session, [block.sha for block in listed if block.replaces is None])
    decoded = {sha: wire.decode(one) for sha, one in data.items()}
    return {
        block.id: wire.block_of(block) if block.replaces is not None else decoded[block.sha]
        for block in listed
    }


def block_id(seq: int, index: int) -> str:
    """The id of an original block in edits: message and index."""
    return f"m{seq}.{index}"


def entry_name(block: Block) -> str:
    """The name of an original block in URLs: its message, plus its index unless that is 0."""
    return f"{block.message.seq}.{block.index}" if block.index else str(block.message.seq)


class StoredBlock(NamedTuple):
    """What a block is made of, except its text."""

    seq: int
    in_message: int
    position: int
    born: int
    turn: int
    role: context.Role
    type: context.BlockType
    kind: context.Kind
    tokens: int
    chars: int
    sha: str
    call: str
    tool_call: str
    tool: str
    file_path: str
    file_action: context.FileAction
    file_start: int | None
    file_end: int | None
    error: bool

    @property
    def file(self) -> context.FileRef | None:
        """The file that the block names."""
        if not self.file_path:
            return None
        return context.FileRef(self.file_path, self.file_action, self.file_start, self.file_end)


_NAMED = {name: f"message__{name}" for name in ("seq", "turn", "role", "call")}
_NAMED["in_message"] = "index"
_COLUMNS = [_NAMED.get(name, name) for name in StoredBlock._fields]

Wanted = bool | Callable[[StoredBlock], bool]
"""Which blocks are read with their texts: all, none, or some."""


def blocks_of(
    session: Session,
    *,
    with_text: Wanted,
    start: int = 0,
    end: int | None = None,
    wires: dict[str, wire.WireBlock] | None = None,
) -> Iterator[context.Block]:
    """Original blocks at positions [start, end), with tokens in the session's counting. `wires`
    gets the wire form of those with a text, by id."""
    last = session.block_count if end is None else end
    rows = _BLOCKS.rows(session=session.pk, start=start, end=last)
    yield from _values(session, rows, with_text=with_text, whole=start == 0, wires=wires)


_BLOCKS = Statement(
    lambda: (
        Block.objects.filter(
            session_id=given_uuid("session"),
            position__gte=given_int("start"),
            position__lt=given_int("end"),
        )
        .order_by("position")
        .values_list(*_COLUMNS)
    )
)


def blocks_at(session: Session, places: Iterable[int]) -> list[context.Block]:
    """Original blocks at these positions, in order, with their texts."""
    wanted = sorted(set(places))
    rows: list[tuple[Any, ...]] = []
    for begin in range(0, len(wanted), CHUNK):
        stored = session.blocks.filter(position__in=wanted[begin : begin + CHUNK])
        rows += stored.order_by("position").values_list(*_COLUMNS)
    return list(_values(session, rows, with_text=True, whole=False))


def _values(
    session: Session,
    stored: Iterable[tuple[Any, ...]],
    *,
    with_text: Wanted,
    whole: bool,
    wires: dict[str, wire.WireBlock] | None = None,
) -> Iterator[context.Block]:
    rows = list(map(StoredBlock._make, stored))
    wanted = [row.sha for row in rows if (with_text(row) if callable(with_text) else with_text)]
    data = {sha: wire.decode(one) for sha, one in contents(session, wanted).items()}
    if wires is not None:
        named = ((block_id(row.seq, row.in_message), data.get(row.sha)) for row in rows)
        wires.update((name, one) for name, one in named if one is not None)
    files = _files_by_tool_call(session, rows, whole=whole)
    for row in rows:
        yield context.Block(
            id=block_id(row.seq, row.in_message),
            position=row.position,
            message=row.seq,
            born=row.born,
            turn=row.turn,
            role=row.role,
            type=row.type,
            kind=row.kind,
            tokens=session.scaled(row.tokens),
            chars=row.chars,
            sha=row.sha,
            text=wire.text_of(data[row.sha]) if row.sha in data else "",
            call=row.call or None,
            tool_call=row.tool_call or None,
            tool=row.tool or None,
            file=row.file or files.get(row.tool_call),
            error=row.error,
        )


def _files_by_tool_call(
    session: Session, rows: list[StoredBlock], *, whole: bool
) -> dict[str, context.FileRef]:
    """Files named by tool calls; if rows are only a part, including those of earlier calls."""
    if not whole:
        calls = {row.tool_call for row in rows if row.type == "tool_use"}
        missing = {row.tool_call for row in rows if row.tool_call} - calls
        uses = _USES.rows(sorted(missing), session=session.pk) if missing else []
        rows = [*map(StoredBlock._make, uses), *rows]
    found = ((row.tool_call, row.file) for row in rows if row.tool_call)
    return {tool_call: file for tool_call, file in found if file is not None}


_USES = StatementAmong(
    lambda calls: Block.objects.filter(
        session_id=given_uuid("session"), type="tool_use", tool_call__in=calls
    ).values_list(*_COLUMNS)
)


def summary_messages(session: Session) -> set[int]:
    """Numbers of the messages that recorded compactions put in place of others.

    Excludes a summary at the start of a session whose earlier part was not imported, since nothing
    else represents that part.
    """
    return set(
        Edit.objects.filter(revision__run__session=session, summary__isnull=False).values_list(
            "summary__message__seq", flat=True
        )
    )


def summaries_of_log(session: Session) -> set[int]:
    """Numbers of the messages that a log's compactions put in place of others: managed runs exclude
    them and keep the others. An agent that summarized its history no longer has the others."""
    made = Edit.objects.filter(revision__run__session=session, summary__isnull=False)
    rows = made.exclude(strategy=Edit.SUMMARIZED)
    return set(rows.values_list("summary__message__seq", flat=True))


def summary_positions(session: Session) -> list[int]:
    """Positions of recorded summaries, which simulations exclude."""
    messages = summary_messages(session)
    if not messages:
        return []
    stored = Block.objects.filter(session=session, message__seq__in=messages)
    return list(stored.values_list("position", flat=True))


def recorded_session(session: Session, *, window: int, with_text: bool = True) -> recorded.Session:
    """A stored session as engine value: originals without the summaries that its log records."""
    left_out = summary_messages(session)
    return recorded.Session(
        blocks=tuple(
            block
            for block in blocks_of(session, with_text=with_text)
            if block.message not in left_out
        ),
        calls=calls_of(session),
        model=session.model,
        window=session.window or window,
        hidden=session.hidden_tokens,
    )
