"""Boards: their owners, notes by agents and people, and rendering for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from compaction import tokens
from compaction.board.board import (
    LONGEST,
    MOST_ENTRIES,
    BoardNote,
    BoardSize,
    Rendered,
    plain,
    render,
)
from compaction.context.stubs import digest
from compaction.redaction.redact import redact
from compaction.summaries.summary import BOARD_HEAD
from sessions.actions.accounts import audit
from sessions.models import Board, Note, Session, Team
from sessions.models.erasure.kept import while_kept
from sessions.models.masking.masking import rules_of
from sessions.models.web.statements import Statement, given_text, given_uuid

_NAMED = ("project", "cwd", "repository", "repo")
"""Metadata fields that may name a session's project."""


class CannotNote(ValueError):
    """Why a note cannot be added to a board, as a sentence; `field` is the invalid input."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def board_of(session: Session) -> Board:
    """The board of a session's task, or its own without a task; created on demand."""
    kind, name = Board.Kind.TASK, session.task
    if not session.task:
        kind, name = Board.Kind.SESSION, str(session.pk)
    if found := _NAMED_SO.first(team=session.team_id, kind=kind.value, name=name):
        return cast(Board, found)
    own = None if session.task else session
    board, _ = Board.objects.get_or_create(
        team_id=session.team_id, kind=kind, name=name, defaults={"session": own}
    )
    return board


_NAMED_SO = Statement(
    lambda: Board.objects.filter(
        team_id=given_uuid("team"), kind=given_text("kind"), name=given_text("name")
    )
)


def project_of(session: Session) -> str:
    """The session's project, from its opening or metadata; empty if unknown."""
    opening = getattr(session, "opening", None)
    if opening is not None and opening.project:
        return str(opening.project)
    found = (session.meta.get(name) for name in _NAMED)
    return next((plain(one)[:300] for one in found if isinstance(one, str) and one.strip()), "")


def project_board(team: Team, project: str) -> Board | None:
    """The board of a project, if there is one."""
    return Board.objects.filter(team=team, kind=Board.Kind.PROJECT, name=project).first()


def entries_of(board: Board) -> list[BoardNote]:
    """The notes of a board, in order of arrival."""
    rows = Note.objects.filter(board=board, removed=None).select_related("share")
    return [entry_of(row) for row in rows.order_by("pk")]


def entry_of(row: Note) -> BoardNote:
    """A stored note as a value."""
    text = row.text
    if row.evidence:
        times, many = sum(row.evidence.values()), len(row.evidence)
        text += (
            f" (seen {times} {_times(times)} in {many} {'session' if many == 1 else 'sessions'})"
        )
    return BoardNote(
        row.kind,  # type: ignore[arg-type]
        text,
        row.key,
        row.agent,
        row.task,
        row.at,
        row.message,
        origin=row.share.agent or "another session" if row.share is not None else "",
        stale=row.stale,
        untrusted=row.untrusted,
    )


def _times(number: int) -> str:
    return "time" if number == 1 else "times"


def rendered(session: Session, board: Board, size: BoardSize | None = None) -> Rendered:
    """Render a board for a model of this session, in the session's token counting."""
    return render(
        entries_of(board), size or BoardSize(), lambda text: session.scaled(tokens.count(text))
    )


def shown_tokens(session: Session) -> int:
    """The maximum size of the board in this session's context, in tokens; 0 if its policy shows
    none."""
    return int((session.policy_document or {}).get("board", 0))


def shown(session: Session, most: int) -> str:
    """The session's board as it follows a summary, in at most so many tokens; empty without
    notes."""
    room = most - session.scaled(tokens.count(f"{BOARD_HEAD}\n"))
    text = rendered(session, board_of(session), BoardSize(room)).text
    return f"{BOARD_HEAD}\n{text}" if text else ""


def trim(board: Board) -> None:
    """Delete the oldest notes if there are too many, and touch the board."""
    board.save(update_fields=["changed"])
    rows = board.notes.filter(removed=None)
    over = rows.count() - MOST_ENTRIES
    if over > 0:
        oldest = rows.exclude(kind="task").order_by("pk").values_list("pk", flat=True)[:over]
        Note.objects.filter(pk__in=list(oldest)).delete()


def mark_stale(session: Session, board: Board, changed: Mapping[str, str]) -> None:
    """Mark knowledge stale that depends on a file changed by this session: on its board, its
    project's board, and in its own shares."""
    if not changed:
        return
    of_project = Q(board__kind=Board.Kind.PROJECT, board__name=project_of(session))
    about = Q(board=board) | Q(share__session=session) | (of_project & Q(board__team=board.team_id))
    rows = Note.objects.filter(about, kind="knowledge", stale="").exclude(files={})
    for row in rows:
        path = changed_of(row.files, changed)
        if path is not None:
            Note.objects.filter(pk=row.pk).update(stale=f"{path} changed"[:300])


def changed_of(files: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The first of these files whose content changed or is unknown now."""
    both = (path for path in files if path in now)
    return next((path for path in both if not now[path] or now[path] != files[path]), None)


# Notes by agents and people


def put_note(
    session: Session,
    kind: str,
    text: str,
    *,
    key: str = "",
    files: Mapping[str, str] | None = None,
    actor: audit.Actor = audit.COMMAND,
) -> tuple[Note, bool]:
    """Add a note to a session's board; also return whether it is new. Raises CannotNote.

    A task replaces the previous one. A note replaces one with the same key and kind; without a key,
    equal text is the same note. Secrets are masked.
    """
    written = redact(plain(text).strip(), rules_of(session.team_id)).text
    if not written:
        raise CannotNote("/text", "is empty")
    if len(written) > LONGEST:
        raise CannotNote("/text", f"is longer than {LONGEST} characters")
    with while_kept(session.pk):
        board = board_of(session)
    name = "task" if kind == "task" else f"own:{plain(key) or _digest(kind, written)}"[:200]
    by = Note.By.AGENT if actor.user is None else Note.By.PERSON
    values = {
        "text": written, "agent": session.agent, "task": session.task, "session": session, "by": by,
        "at": int(timezone.now().timestamp() * 1000), "files": dict(files or {}), "stale": "",
        "message": None, "share": None, "removed": None,
    }  # fmt: skip
    with while_kept(session.pk):
        row = board.notes.filter(key=name).first()
        if row is not None and row.kind != kind:
            raise CannotNote("/key", f"belongs to a note of kind {row.kind}; use another key")
        try:
            made, created = Note.objects.update_or_create(
                board=board, key=name, defaults=values, create_defaults={**values, "kind": kind}
            )
        except IntegrityError:  # lost a race for the key
            made, created = board.notes.get(key=name), False
        trim(board)
        if by == Note.By.PERSON:
            audit.note(session.team, actor, "note.set", session.external_id, kind=kind)
    return made, created


def _digest(kind: str, text: str) -> str:
    return digest(f"{kind}\n{text}")[:24]


def remove(row: Note, actor: audit.Actor = audit.COMMAND) -> None:
    """Remove a note with its text; code that finds it again does not add it back."""
    with transaction.atomic():
        Note.objects.filter(pk=row.pk).update(
            removed=timezone.now(), text="", files={}, evidence={}
        )
        row.board.save(update_fields=["changed"])
        audit.note(row.board.team, actor, "note.removed", row.board.name, kind=row.kind)


def forget(team: Team, sessions: QuerySet[Session]) -> None:
    """Withdraw project knowledge learned from these sessions before they are deleted; empty boards
    of projects go too, and of tasks without another session."""
    rows = list(sessions.select_related("opening"))
    gone = {str(one.pk) for one in rows}
    named = {project_of(one) for one in rows}
    about = Board.objects.filter(team=team, kind=Board.Kind.PROJECT, name__in=named)
    notes = Note.objects.filter(board__in=about, removed=None)
    for row in notes.filter(by=Note.By.CODE):
        left = {name: times for name, times in row.evidence.items() if name not in gone}
        if not left:
            row.delete()
        elif left != row.evidence:
            Note.objects.filter(pk=row.pk).update(evidence=left)
    about.exclude(pk__in=notes.values("board")).delete()
    tasks = {one.task for one in rows if one.task}
    at_work = Session.objects.filter(team=team, task__in=tasks).exclude(
        pk__in=[one.pk for one in rows]
    )
    ended = Board.objects.filter(team=team, kind=Board.Kind.TASK, name__in=tasks)
    ended = ended.exclude(name__in=at_work.values("task"))
    others = Note.objects.filter(board__in=ended).exclude(session__in=rows)
    ended.exclude(pk__in=others.values("board")).delete()
