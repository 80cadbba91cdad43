"""Boards: whose they are, what agents and people put there, and how a model reads them."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from compaction import tokens
from compaction.board.board import LONGEST, MOST_ENTRIES, BoardSize, Entry, Rendered, plain, render
from compaction.redaction.redact import redact
from compaction.stubs import digest
from sessions.actions import audit
from sessions.models import Anchor, Board, Session, Team

_NAMED = ("project", "cwd", "repository", "repo")
"""Fields of a session's metadata that say which project it works on."""


class CannotAnchor(ValueError):
    """Why an entry cannot be put on a board, as a sentence; `field` is what is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def board_of(session: Session) -> Board:
    """The board of a session's task, or its own where it has no task; made at the first need."""
    kind, name = Board.Kind.TASK, session.task
    if not session.task:
        kind, name = Board.Kind.SESSION, str(session.pk)
    own = None if session.task else session
    board, _ = Board.objects.get_or_create(
        team_id=session.team_id, kind=kind, name=name, defaults={"session": own}
    )
    return board


def project_of(session: Session) -> str:
    """The project that a session works on, as it says itself; empty where it does not."""
    opening = getattr(session, "opening", None)
    if opening is not None and opening.project:
        return str(opening.project)
    found = (session.meta.get(name) for name in _NAMED)
    return next((plain(one)[:300] for one in found if isinstance(one, str) and one.strip()), "")


def project_board(team: Team, project: str) -> Board | None:
    """What is known of a project, if anything is."""
    return Board.objects.filter(team=team, kind=Board.Kind.PROJECT, name=project).first()


def entries_of(board: Board) -> list[Entry]:
    """The entries of a board in the order in which they came."""
    rows = Anchor.objects.filter(board=board, removed=None).select_related("share")
    return [entry_of(row) for row in rows.order_by("pk")]


def entry_of(row: Anchor) -> Entry:
    """A stored entry as a value."""
    text = row.text
    if row.evidence:
        times, many = sum(row.evidence.values()), len(row.evidence)
        text += (
            f" (seen {times} {_times(times)} in {many} {'session' if many == 1 else 'sessions'})"
        )
    return Entry(
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
    """A board as a model of this session reads it, in the session's counting."""
    return render(
        entries_of(board), size or BoardSize(), lambda text: session.scaled(tokens.count(text))
    )


def trim(board: Board) -> None:
    """Let the oldest entries go where there are too many, and note that the board changed."""
    board.save(update_fields=["changed"])
    rows = board.anchors.filter(removed=None)
    over = rows.count() - MOST_ENTRIES
    if over > 0:
        oldest = rows.exclude(kind="task").order_by("pk").values_list("pk", flat=True)[:over]
        Anchor.objects.filter(pk__in=list(oldest)).delete()


def mark_stale(session: Session, board: Board, changed: Mapping[str, str]) -> None:
    """Mark knowledge that rests on a file which this session changed: on its board, on that of its
    project, and what it shared itself."""
    if not changed:
        return
    of_project = Q(board__kind=Board.Kind.PROJECT, board__name=project_of(session))
    about = Q(board=board) | Q(share__session=session) | (of_project & Q(board__team=board.team_id))
    rows = Anchor.objects.filter(about, kind="knowledge", stale="").exclude(files={})
    for row in rows:
        path = changed_of(row.files, changed)
        if path is not None:
            Anchor.objects.filter(pk=row.pk).update(stale=f"{path} changed"[:300])


def changed_of(files: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The first of these files that holds something else now, or of which that is not known."""
    both = (path for path in files if path in now)
    return next((path for path in both if not now[path] or now[path] != files[path]), None)


# What agents and people put there


def anchor(
    session: Session,
    kind: str,
    text: str,
    *,
    key: str = "",
    files: Mapping[str, str] | None = None,
    actor: audit.Actor = audit.COMMAND,
) -> tuple[Anchor, bool]:
    """Put an entry on the board of a session; whether it is new there. Raises CannotAnchor.

    The task is set in place of another. Of the same key another entry of the same kind takes the
    place of the first; without a key the same text is the same entry. Secrets are masked.
    """
    told = redact(plain(text).strip()).text
    if not told:
        raise CannotAnchor("/text", "is empty")
    if len(told) > LONGEST:
        raise CannotAnchor("/text", f"is longer than {LONGEST} characters")
    board = board_of(session)
    name = "task" if kind == "task" else f"own:{plain(key) or _digest(kind, told)}"[:200]
    by = Anchor.By.AGENT if actor.user is None else Anchor.By.PERSON
    values = {
        "text": told, "agent": session.agent, "task": session.task, "session": session, "by": by,
        "at": int(timezone.now().timestamp() * 1000), "files": dict(files or {}), "stale": "",
        "message": None, "share": None, "removed": None,
    }  # fmt: skip
    with transaction.atomic():
        row = board.anchors.filter(key=name).first()
        if row is not None and row.kind != kind:
            raise CannotAnchor("/key", f"names an entry of kind {row.kind}")
        try:
            made, created = Anchor.objects.update_or_create(
                board=board, key=name, defaults=values, create_defaults={**values, "kind": kind}
            )
        except IntegrityError:  # somebody else was faster with the same key
            made, created = board.anchors.get(key=name), False
        trim(board)
        if by == Anchor.By.PERSON:
            audit.note(session.team, actor, "anchor.set", session.external_id, kind=kind)
    return made, created


def _digest(kind: str, text: str) -> str:
    return digest(f"{kind}\n{text}")[:24]


def remove(row: Anchor, actor: audit.Actor = audit.COMMAND) -> None:
    """Take an entry off its board, text and all; code that sees the same again leaves it away."""
    with transaction.atomic():
        Anchor.objects.filter(pk=row.pk).update(
            removed=timezone.now(), text="", files={}, evidence={}
        )
        row.board.save(update_fields=["changed"])
        audit.note(row.board.team, actor, "anchor.removed", row.board.name, kind=row.kind)


def forget(team: Team, sessions: QuerySet[Session]) -> None:
    """Take back what projects learned from these sessions, before they are deleted; a board of a
    project of which nothing is known any more goes too."""
    rows = list(sessions.select_related("opening"))
    gone = {str(one.pk) for one in rows}
    named = {project_of(one) for one in rows}
    about = Board.objects.filter(team=team, kind=Board.Kind.PROJECT, name__in=named)
    anchors = Anchor.objects.filter(board__in=about, removed=None)
    for row in anchors.filter(by=Anchor.By.CODE):
        left = {name: times for name, times in row.evidence.items() if name not in gone}
        if not left:
            row.delete()
        elif left != row.evidence:
            Anchor.objects.filter(pk=row.pk).update(evidence=left)
    about.exclude(pk__in=anchors.values("board")).delete()
