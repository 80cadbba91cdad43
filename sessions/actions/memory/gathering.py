"""Gathering: code that extracts notes from sessions for their boards and projects,
incrementally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import OuterRef
from django.db.models.functions import Coalesce

from compaction.board.board import LONGEST, BoardNote, plain
from compaction.board.notes import Gatherer
from compaction.board.project import Observed
from compaction.redaction.redact import Masker, redact
from sessions.actions.memory.boards import board_of, mark_stale, project_of, trim
from sessions.actions.reviews.fact_ledgers import is_over
from sessions.models import Block, Board, Gathering, Note, Session
from sessions.models.erasure.kept import while_kept
from sessions.models.masking.masking import rules_of
from sessions.models.record.values import blocks_at, blocks_of
from sessions.models.web.statements import (
    Statement,
    Update,
    given_columns,
    given_flag,
    given_int,
    given_uuid,
)

AT_ONCE = 1_000
"""Blocks read at a time; their texts are in memory together."""

WAITING = 50
"""Blocks after which a board is brought up to date within a turn."""

WITNESSES = 50
"""Most sessions listed as evidence for one note, newest first."""


def is_due(session: Session) -> bool:
    """Whether a turn or the session has ended, or many blocks wait, so that there may be something
    to tell others."""
    if is_over(session):
        return True
    row = _STANDING.first(session=session.pk, last=session.block_count - 1)
    gathered, role, type = row or (0, "", "")
    turn_ended = role == "assistant" and type != "tool_use"
    return gathered < session.block_count and (
        turn_ended or session.block_count - gathered >= WAITING
    )


_STANDING = Statement(
    lambda: (
        Block.objects.filter(session_id=given_uuid("session"), position=given_int("last"))
        .annotate(
            gathered=Coalesce(
                Gathering.objects.filter(session=OuterRef("session")).values("blocks")[:1], 0
            )
        )
        .values_list("gathered", "message__role", "type")
    )
)


def gather(session: Session) -> None:
    """Bring a session's board up to date; reads only new blocks.

    Safe to call at any time and concurrently: the first to finish wins. Raises MissingBlob,
    DamagedBlob, SessionErased.
    """
    session.reread()
    with while_kept(session.pk):
        board = board_of(session)
        row = _ROW.first(session=session.pk)
        if row is None or row.board_id != board.pk:
            # The session's task changed: gather from the beginning for the other board.
            row, _ = Gathering.objects.update_or_create(
                session=session,
                defaults={"board": board, "blocks": 0, "remembered": {}, "over": False},
            )
    over = is_over(session)
    if row.blocks >= session.block_count and (row.over or not over):
        return
    found = _FoundNotes(session, row)
    found.read(session.block_count)
    if over:
        found.entries += found.gatherer.ended()
    _keep(session, board, row, found, over=over)


_ROW = Statement(lambda: Gathering.objects.filter(session_id=given_uuid("session")))


class _FoundNotes:
    """The notes extracted from a session's new blocks."""

    def __init__(self, session: Session, row: Gathering) -> None:
        known: Mapping[str, Any] = row.remembered
        about = known.get("notes", {})
        waiting = blocks_at(session, about.get("waiting", ()))
        self.session, self.start = session, row.blocks
        self.gatherer = Gatherer.recalled(session.agent, about, waiting)
        self.observed = Observed.recalled(known.get("project", {}))
        self.entries: list[BoardNote] = []

    def read(self, end: int) -> None:
        for start in range(self.start, end, AT_ONCE):
            stop = min(start + AT_ONCE, end)
            for block in blocks_of(self.session, with_text=True, start=start, end=stop):
                self.entries += self.gatherer.add(block)
                self.observed.add(block)

    def remembered(self) -> dict[str, Any]:
        return {"notes": self.gatherer.remembered(), "project": self.observed.remembered()}


def _keep(
    session: Session, board: Board, row: Gathering, found: _FoundNotes, *, over: bool
) -> None:
    with while_kept(session.pk):
        taken = _KEEP.run(
            session=session.pk,
            board=board.pk,
            old_blocks=row.blocks,
            old_over=row.over,
            blocks=session.block_count,
            remembered=_storable(found.remembered()),
            over=over,
        )
        if not taken:
            return
        _write(session, board, found.entries)
        mark_stale(session, board, found.gatherer.changed)
        if over and (project := project_of(session)):
            _keep_project(session, project, found.observed)


_KEEP = Update(
    lambda: (
        Gathering.objects.filter(
            session_id=given_uuid("session"),
            board_id=given_int("board"),
            blocks=given_int("old_blocks"),
            over=given_flag("old_over"),
        ),
        given_columns(Gathering, ("blocks", "remembered", "over")),
    )
)


def _storable(value: Any) -> Any:
    """JSON with all texts made storable in every database."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): _storable(one) for key, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list) else value


def _write(session: Session, board: Board, entries: Iterable[BoardNote]) -> None:
    newest = {_key(session, entry): entry for entry in entries}
    if not newest:
        return
    seqs = {entry.message for entry in newest.values() if entry.message is not None}
    times = dict(session.messages.filter(seq__in=seqs).values_list("seq", "at"))
    known = {row.key: row for row in board.notes.filter(key__in=newest)}
    masker = Masker(rules_of(board.team_id))
    fresh: list[Note] = []
    for key, entry in newest.items():
        row = known.get(key)
        if row is not None and (entry.kind == "task" or row.removed):
            continue  # the first one, or its removal, wins
        at = times.get(entry.message) if entry.message is not None else None
        task = session.task or session.title if entry.kind == "task_done" else session.task
        values = {
            "text": masker.mask(entry.text)[:LONGEST],
            "at": at,
            "agent": plain(entry.agent)[:120],
            "task": task[:300],
            "message": entry.message,
        }
        if row is not None and entry.kind == "task_done":
            row.delete()  # the last report becomes the newest note
            row = None
        if row is None:
            fresh.append(
                Note(
                    board=board, key=key, kind=entry.kind, by=Note.By.CODE, session=session,
                    untrusted=entry.untrusted, **values,
                )
            )  # fmt: skip
        else:
            Note.objects.filter(pk=row.pk).update(**values)
    Note.objects.bulk_create(fresh, ignore_conflicts=True)
    trim(board)


def _key(session: Session, entry: BoardNote) -> str:
    """The key of a note: sessions of one task share the task, and keep other notes apart."""
    return "task" if entry.kind == "task" else f"{session.pk.hex[:12]}:{entry.key}"[:200]


def _keep_project(session: Session, project: str, observed: Observed) -> None:
    board, _ = Board.objects.get_or_create(
        team_id=session.team_id, kind=Board.Kind.PROJECT, name=project
    )
    root = project if project.startswith("/") else str(session.meta.get("cwd") or "")
    shown = {one.key: one for one in observed.shown(root)}
    known = {row.key: row for row in board.notes.filter(key__in=shown)}
    rules = rules_of(session.team_id)
    for key, one in shown.items():
        row = known.get(key) or Note(board=board, key=key, kind="knowledge", by=Note.By.CODE)
        if row.removed:
            continue
        seen = {name: times for name, times in row.evidence.items() if name != str(session.pk)}
        row.evidence = dict([*seen.items(), (str(session.pk), one.times)][-WITNESSES:])
        row.text, row.session, row.at = (
            redact(one.text, rules).text[:LONGEST],
            session,
            session.ended_at,
        )
        row.save()
    trim(board)
