"""Gathering: what code reads off sessions for their boards and projects, once and as it comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction

from compaction.board.anchors import Gatherer
from compaction.board.board import LONGEST, Entry, plain
from compaction.board.project import Observed
from compaction.redaction.redact import Masker, redact
from sessions.actions.boards import board_of, mark_stale, project_of, trim
from sessions.actions.fact_ledgers import is_over
from sessions.models import Anchor, Board, Gathering, Session
from sessions.models.values import blocks_at, blocks_of

AT_ONCE = 1_000
"""Blocks read at a time: their texts are in memory together."""

WITNESSES = 50
"""Sessions that the evidence of one anchor names, the newest."""


def gather(session: Session) -> None:
    """Bring a session's board up to what is stored of it; reads what is new only.

    May be called at any time and by several at once: the faster one's stands. Raises MissingBlob,
    DamagedBlob.
    """
    session.refresh_from_db(fields=["block_count", "task", "outcome", "agent", "meta"])
    board = board_of(session)
    row = Gathering.objects.filter(session=session).first()
    if row is None or row.board_id != board.pk:
        # Under another task it is told on another board, from its beginning.
        row, _ = Gathering.objects.update_or_create(
            session=session,
            defaults={"board": board, "blocks": 0, "remembered": {}, "over": False},
        )
    over = is_over(session)
    if row.blocks >= session.block_count and (row.over or not over):
        return
    found = _Found(session, row)
    found.read(session.block_count)
    if over:
        found.entries += found.gatherer.ended()
    _keep(session, board, row, found, over=over)


class _Found:
    """What a session's new blocks gave."""

    def __init__(self, session: Session, row: Gathering) -> None:
        known: Mapping[str, Any] = row.remembered
        about = known.get("anchors", {})
        waiting = blocks_at(session, about.get("waiting", ()))
        self.session, self.start = session, row.blocks
        self.gatherer = Gatherer.recalled(session.agent, about, waiting)
        self.observed = Observed.recalled(known.get("project", {}))
        self.entries: list[Entry] = []

    def read(self, end: int) -> None:
        for start in range(self.start, end, AT_ONCE):
            stop = min(start + AT_ONCE, end)
            for block in blocks_of(self.session, with_text=True, start=start, end=stop):
                self.entries += self.gatherer.add(block)
                self.observed.add(block)

    def remembered(self) -> dict[str, Any]:
        return {"anchors": self.gatherer.remembered(), "project": self.observed.remembered()}


def _keep(session: Session, board: Board, row: Gathering, found: _Found, *, over: bool) -> None:
    with transaction.atomic():
        same = Gathering.objects.filter(session=session, board=board, blocks=row.blocks)
        taken = same.filter(over=row.over).update(
            blocks=session.block_count, remembered=_storable(found.remembered()), over=over
        )
        if not taken:
            return
        _write(session, board, found.entries)
        mark_stale(session, board, found.gatherer.changed)
        if over and (project := project_of(session)):
            _keep_project(session, project, found.observed)


def _storable(value: Any) -> Any:
    """The same JSON with texts that every database takes."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): _storable(one) for key, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list) else value


def _write(session: Session, board: Board, entries: Iterable[Entry]) -> None:
    newest = {_key(session, entry): entry for entry in entries}
    if not newest:
        return
    seqs = {entry.message for entry in newest.values() if entry.message is not None}
    times = dict(session.messages.filter(seq__in=seqs).values_list("seq", "at"))
    known = {row.key: row for row in board.anchors.filter(key__in=newest)}
    masker = Masker()
    fresh: list[Anchor] = []
    for key, entry in newest.items():
        row = known.get(key)
        if row is not None and (entry.kind == "task" or row.removed):
            continue  # who set it first, or took it away, has said so
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
            row.delete()  # what was said last is the newest entry, too
            row = None
        if row is None:
            fresh.append(
                Anchor(
                    board=board, key=key, kind=entry.kind, by=Anchor.By.CODE, session=session,
                    untrusted=entry.untrusted, **values,
                )
            )  # fmt: skip
        else:
            Anchor.objects.filter(pk=row.pk).update(**values)
    Anchor.objects.bulk_create(fresh, ignore_conflicts=True)
    trim(board)


def _key(session: Session, entry: Entry) -> str:
    """Sessions of one task have a task in common, and all else beside each other."""
    return "task" if entry.kind == "task" else f"{session.pk.hex[:12]}:{entry.key}"[:200]


def _keep_project(session: Session, project: str, observed: Observed) -> None:
    board, _ = Board.objects.get_or_create(
        team_id=session.team_id, kind=Board.Kind.PROJECT, name=project
    )
    root = project if project.startswith("/") else str(session.meta.get("cwd") or "")
    shown = {one.key: one for one in observed.shown(root)}
    known = {row.key: row for row in board.anchors.filter(key__in=shown)}
    for key, one in shown.items():
        row = known.get(key) or Anchor(board=board, key=key, kind="knowledge", by=Anchor.By.CODE)
        if row.removed:
            continue
        seen = {name: times for name, times in row.evidence.items() if name != str(session.pk)}
        row.evidence = dict([*seen.items(), (str(session.pk), one.times)][-WITNESSES:])
        row.text, row.session, row.at = redact(one.text).text[:LONGEST], session, session.ended_at
        row.save()
    trim(board)
