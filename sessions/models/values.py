"""Rows to values: the only bridge from the store to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compaction import context, wire
from compaction import session as recorded
from compaction.cache.economy import Keep, asked_for
from sessions.models.blobs import Blob
from sessions.models.revisions import Edit
from sessions.models.sessions import Block, ModelCall, Session

CHUNK = 400
"""Blobs per query: below SQLite's limit on variables."""


class MissingBlob(Exception):
    """A block's bytes are not in the store."""


def contents(session: Session, shas: list[str]) -> dict[str, bytes]:
    """The bytes of these blobs of the session's team, verified. Raises MissingBlob, DamagedBlob."""
    found: dict[str, bytes] = {}
    wanted = list(dict.fromkeys(shas))
    for start in range(0, len(wanted), CHUNK):
        chunk = wanted[start : start + CHUNK]
        for blob in Blob.objects.filter(team_id=session.team_id, sha__in=chunk):
            found[blob.sha] = blob.content()
    if missing := [sha for sha in wanted if sha not in found]:
        raise MissingBlob(f"{len(missing)} blobs are missing, first {missing[0]}")
    return found


def wire_blocks(session: Session, blocks: Iterable[context.Block]) -> dict[str, wire.WireBlock]:
    """The wire blocks of these blocks by their ids, a query for every 400 of them.

    Originals are the stored bytes, verified; what an edit made is written from its text. Raises
    MissingBlob, DamagedBlob.
    """
    listed = list(blocks)
    data = contents(session, [block.sha for block in listed if block.replaces is None])
    return {
        block.id: wire.decode(data[block.sha]) if block.replaces is None else wire.block_of(block)
        for block in listed
    }


def block_id(seq: int, index: int) -> str:
    """The name of an original block in edits: message and index."""
    return f"m{seq}.{index}"


def entry_name(block: Block) -> str:
    """An original block in an address: its message, and its index where that is not the first."""
    return f"{block.message.seq}.{block.index}" if block.index else str(block.message.seq)


def blocks_of(
    session: Session, *, with_text: bool, start: int = 0, end: int | None = None
) -> Iterator[context.Block]:
    """Original blocks at positions [start, end), tokens scaled to the session's counting."""
    stored = session.blocks.select_related("message").order_by("position")
    if start or end is not None:
        stored = stored.filter(position__gte=start)
    rows = list(stored if end is None else stored.filter(position__lt=end))
    yield from _values(session, rows, with_text=with_text, whole=start == 0)


def blocks_at(session: Session, places: Iterable[int]) -> list[context.Block]:
    """Original blocks at these positions, in order, with their texts."""
    wanted = sorted(set(places))
    rows: list[Block] = []
    for begin in range(0, len(wanted), CHUNK):
        stored = session.blocks.filter(position__in=wanted[begin : begin + CHUNK])
        rows += stored.select_related("message").order_by("position")
    return list(_values(session, rows, with_text=True, whole=False))


def _values(
    session: Session, rows: list[Block], *, with_text: bool, whole: bool
) -> Iterator[context.Block]:
    data = contents(session, [row.sha for row in rows]) if with_text else {}
    files = _files_by_tool_call(session, rows, whole=whole)
    for row in rows:
        yield context.Block(
            id=block_id(row.message.seq, row.index),
            position=row.position,
            message=row.message.seq,
            born=row.born,
            turn=row.message.turn,
            role=row.message.role,  # type: ignore[arg-type]
            type=row.type,  # type: ignore[arg-type]
            kind=row.kind,  # type: ignore[arg-type]
            tokens=session.scaled(row.tokens),
            chars=row.chars,
            sha=row.sha,
            text=wire.text_of(wire.decode(data[row.sha])) if with_text else "",
            call=row.message.call or None,
            tool_call=row.tool_call or None,
            tool=row.tool or None,
            file=_file(row) or files.get(row.tool_call),
            error=row.error,
        )


def _file(row: Block) -> context.FileRef | None:
    if not row.file_path:
        return None
    return context.FileRef(
        path=row.file_path,
        action=row.file_action,  # type: ignore[arg-type]
        start=row.file_start,
        end=row.file_end,
    )


def _files_by_tool_call(
    session: Session, rows: list[Block], *, whole: bool
) -> dict[str, context.FileRef]:
    """The files that tool calls name; where rows are a part, also those of earlier calls."""
    if not whole:
        calls = {row.tool_call for row in rows if row.type == "tool_use"}
        missing = {row.tool_call for row in rows if row.tool_call} - calls
        uses = session.blocks.filter(type="tool_use", tool_call__in=missing) if missing else ()
        rows = [*uses, *rows]
    found = ((row.tool_call, _file(row)) for row in rows if row.tool_call)
    return {tool_call: file for tool_call, file in found if file is not None}


def calls_of(session: Session) -> tuple[recorded.Call, ...]:
    """The session's model calls by step."""
    return tuple(
        recorded.Call(call.step, call.model, call.at, usage_of(call), call.settings, call.client)
        for call in session.calls.order_by("step")
    )


def begun_before(session: Session, step: int) -> int | None:
    """When the newest call before a step began (ms since the epoch); None where nobody knows."""
    known = session.calls.filter(step__lt=step, at__isnull=False).order_by("-step")
    at: int | None = known.values_list("at", flat=True).first()
    return at


LATELY = 50
"""Calls that tell how long a session asks for its cache entries to live (ours)."""


def asked_of(session: Session) -> tuple[int | None, Keep]:
    """When a session's first call began (ms since the epoch; None where unknown), and how long most
    cache writes of its newest calls asked to be kept. Work is the same however long it is."""
    first: int | None = session.calls.order_by("step").values_list("at", flat=True).first()
    newest = session.calls.exclude(fresh=None).order_by("-step")
    written = newest.values_list("cache_write_5m", "cache_write_1h")[:LATELY]
    usages = (
        recorded.Usage(cache_write_5m=five or 0, cache_write_1h=hour or 0) for five, hour in written
    )
    return first, asked_for(usages)


def usage_of(call: ModelCall) -> recorded.Usage | None:
    """Reported usage of a call; None where the provider reported none."""
    if call.fresh is None:
        return None
    return recorded.Usage(
        fresh=call.fresh,
        cache_read=call.cache_read or 0,
        cache_write_5m=call.cache_write_5m or 0,
        cache_write_1h=call.cache_write_1h or 0,
        output=call.output or 0,
        reasoning=call.reasoning or 0,
    )


def summary_messages(session: Session) -> set[int]:
    """Numbers of the messages that recorded compactions put in place of others.

    A summary that opens a session whose earlier part is not here is none of these: without it
    nothing would stand for that part.
    """
    return set(
        Edit.objects.filter(revision__run__session=session, summary__isnull=False).values_list(
            "summary__message__seq", flat=True
        )
    )


def recorded_session(session: Session, *, window: int, with_text: bool = True) -> recorded.Session:
    """A stored session for the engine: originals without the summaries that its log records."""
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
