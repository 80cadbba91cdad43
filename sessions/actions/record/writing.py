"""Write numbered records as rows, parents before children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sessions.actions.masking.incoming import count_masked
from sessions.actions.record.numbering import Numbering
from sessions.actions.record.prepare import PreparedBlock
from sessions.actions.record.recorded import BATCH, PendingRevision, RecordedRun
from sessions.models import (
    Block,
    Edit,
    Entry,
    Message,
    ModelCall,
    Pin,
    Replacement,
    Retry,
    Revision,
    Run,
)
from sessions.models.record.blobs import keep
from sessions.models.web.statements import (
    Statement,
    Update,
    given_columns,
    given_int,
    given_uuid,
    insert,
    stored_uuid,
)

Row = Sequence[Any]
"""Values of a row in the order of its columns."""

MESSAGE_COLUMNS = (
    *("session_id", "seq", "key", "digest", "role", "call", "born", "turn"),
    *("human", "late", "at", "line", "extra"),
)
BLOCK_COLUMNS = (
    *("session_id", "message_id", "index", "position", "born", "type", "kind", "tool"),
    *("tool_call", "file_path", "file_action", "file_start", "file_end", "error"),
    *("tokens", "estimated", "chars", "bytes", "sha", "preview"),
)
CALL_COLUMNS = (
    *("session_id", "call", "step", "model", "at", "uncached", "cache_read", "cache_write_5m"),
    *("cache_write_1h", "output", "reasoning", "iterations", "reconciles", "usage_raw"),
    *("stop_reason", "cost_microusd", "dropped", "context", "settings", "client"),
    "response",
)


def write(new: Numbering) -> None:
    """Insert the numbered rows and update the recorded run; the caller saves the session."""
    session = stored_uuid(new.session.pk)
    _write_blobs(new)
    insert(Message, MESSAGE_COLUMNS, [(session, *row) for row in new.messages])
    if new.messages:
        ids = _message_ids(new)
        insert(Block, BLOCK_COLUMNS, _block_rows(new, session, ids))
        _write_marks(new, ids)
    calls = [[getattr(call, name) for name in CALL_COLUMNS[1:]] for call in new.new_calls]
    insert(ModelCall, CALL_COLUMNS, [(session, *row) for row in calls])
    for call in new.changed_calls.values():
        call.save()
    if new.revised is not None:
        _write_changes(new.revised)
    count_masked(new.session, _masked(new))
    new.run.steps = new.session.step_count
    run = new.run
    _KEEP_RUN.run(run=run.pk, head=run.head, steps=run.steps, fold=run.fold)


def _masked(new: Numbering) -> Counter[str]:
    """How many places of the new messages were masked, by rule."""
    counts: Counter[str] = Counter()
    for one in new.fresh:
        counts.update(one.message.masked)
    return counts


_KEEP_RUN = Update(
    lambda: (
        Run.objects.filter(pk=given_uuid("run")),
        given_columns(Run, ("head", "steps", "fold")),
    )
)


_IDS_FROM = Statement(
    lambda: Message.objects.filter(
        session_id=given_uuid("session"), seq__gte=given_int("seq")
    ).values_list("seq", "pk")
)


def _write_blobs(new: Numbering) -> None:
    keep(new.session.team_id, (block for _, block, _ in new.blocks))


def _message_ids(new: Numbering) -> dict[int, int]:
    return dict(_IDS_FROM.rows(session=new.session.pk, seq=new.fresh[0].seq))


def _block_rows(new: Numbering, session: Any, ids: Mapping[int, int]) -> list[Row]:
    rows: list[Row] = []
    first = new.session.block_count - len(new.blocks)
    index, before = 0, 0
    for position, (seq, block, born) in enumerate(new.blocks, first):
        index = index + 1 if seq == before else 0
        before = seq
        rows.append((session, ids[seq], index, position, born, *_columns(block)))
    return rows


def _columns(block: PreparedBlock) -> Row:
    file = block.file
    return (
        block.type,
        block.kind,
        block.tool,
        block.tool_call,
        file.path if file else "",
        file.action if file else "",
        file.start if file else None,
        file.end if file else None,
        block.error,
        block.tokens,
        block.estimated,
        block.chars,
        block.size,
        block.sha,
        block.preview,
    )


def _write_marks(new: Numbering, ids: Mapping[int, int]) -> None:
    """Pins that came with their messages, and retries."""
    session = new.session
    pins = [ids[one.seq] for one in new.fresh if one.message.record.pinned]
    if pins:
        Pin.objects.bulk_create([Pin(session=session, message_id=pk) for pk in pins])
    # A response's blocks are born at the step after it.
    born = {seq: step for seq, _, step in new.blocks}
    again = [
        Retry(session=session, message_id=ids[seq], step=born[seq] - 1, of_step=step)
        for seq, message, _ in new.fresh
        if (step := message.record.retry_of) is not None
    ]
    if again:
        Retry.objects.bulk_create(again)


def _write_changes(recorded: RecordedRun) -> None:
    """Write changes of the recorded context; blocks must already be stored."""
    if not recorded.changes:
        return
    recorded.resolve()

    def every(part: Callable[[PendingRevision], Sequence[Any]]) -> list[Any]:
        return [row for change in recorded.changes for row in part(change)]

    keep(recorded.session.team_id, every(lambda one: one.blobs))
    Revision.objects.bulk_create([one.revision for one in recorded.changes], batch_size=BATCH)
    Replacement.objects.bulk_create(every(lambda one: one.replacements), batch_size=BATCH)
    Edit.objects.bulk_create(every(lambda one: one.edits), batch_size=BATCH)
    Entry.objects.bulk_create(every(lambda one: one.entries), batch_size=BATCH)
    closed = every(lambda one: one.closed)
    Entry.objects.bulk_update(closed, ["to_step", "closed_by"], batch_size=BATCH // 2)
