"""Unpack: put the messages of an archived session back into their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.http import Http404
from django.utils import timezone

from sessions.actions.archives.packed import (
    AT_ONCE,
    BY_NAME,
    ArchivedTable,
    UnreadableArchive,
    parts_of,
    rows_in,
)
from sessions.actions.assessments import assess
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.search import indexing
from sessions.models import Archive, Blob, Entry, Run, Session, Team
from sessions.models.record import objects
from sessions.models.record.blobs import keep
from sessions.models.record.values import contents
from sessions.models.web.shown import as_stored
from sessions.models.web.statements import insert, stored_uuid
from sessions.signals import blobs_go

KIND = "unpack"

AT_ONCE_BLOCKS = 2_000
"""Blocks of an archive that is unpacked within the request that needs it; a larger one is unpacked
by a job (our choice: about a second)."""

BLOCKS_PER_SECOND = 1_000
"""About how many blocks are unpacked per second, for people who wait."""

Heard = Callable[[], None]
"""Called between the parts of the work."""


class Unpacking(Http404):
    """The session is archived, and a job unpacks it; `str()` says so, `seconds` how long it takes
    at most."""

    def __init__(self, archive: Archive) -> None:
        self.seconds = 1 + archive.rows.get("block", 0) // BLOCKS_PER_SECOND
        super().__init__(
            f"This session was archived, and is being unpacked. That takes about {self.seconds} s."
        )


def opened(session: Session) -> None:
    """Unpack a session if it is archived: a small one now, a large one by a job. Raises
    Unpacking, MissingBlob, DamagedBlob, UnreadableArchive."""
    if session.archived is None:
        return
    archive = Archive.objects.filter(session=session).first()
    if archive is not None and archive.rows.get("block", 0) > AT_ONCE_BLOCKS:
        jobs.ask_for(session, KIND)
        raise Unpacking(archive)
    unpack(session)


def open_all(sessions: Iterable[Session]) -> None:
    """Unpack those of these sessions that are archived."""
    for session in sessions:
        if session.archived is not None:
            unpack(session)


def open_family(session: Session) -> None:
    """Unpack the archived sub-agents of a session, and theirs."""
    for child in session.children.select_related("team"):
        open_all([child])
        open_family(child)


def open_named(team: Team, names: Iterable[Any]) -> None:
    """Unpack the archived sessions of a team among these external ids, and those numbered after
    one."""
    archived = Session.objects.for_team(team).filter(archived__isnull=False)
    for name in names:
        # An id that no database stores is refused where it is read.
        if isinstance(name, str) and name and name.isprintable():
            named = Q(external_id=name) | Q(external_id__startswith=f"{name}.")
            open_all(archived.filter(named).select_related("team"))


@contextmanager
def as_unpacked(session: Session) -> Iterator[None]:
    """A session with its rows, for a reader of everything: what was unpacked for it is rolled back
    at the end. Others cannot write on SQLite meanwhile."""
    if session.archived is None:
        yield
        return
    with transaction.atomic():
        unpack(session)
        yield
        transaction.set_rollback(True)


def unpack_job(running: Running) -> JobOutcome:
    """Run the `unpack` job: payload {session}."""
    session = Session.objects.for_team(running.team).filter(pk=running.payload["session"]).first()
    if session is None:
        raise PermanentFailure("The session no longer exists", "It was deleted.", "Nothing to do.")
    done = 0

    def heard() -> None:
        nonlocal done
        done += 1
        running.progress(done, None, "parts")

    try:
        unpack(session, heard)
    except UnreadableArchive as error:
        raise PermanentFailure(
            "The archive cannot be read", str(error), "Restore it from a backup."
        ) from error
    return JobOutcome({"session": str(session.pk)})


def unpack(session: Session, heard: Heard = lambda: None) -> None:
    """Put back what an archive holds, in short transactions, and remove the archive.

    Safe to repeat, to interrupt at any point, and to do twice at once: the session stays archived
    until the last row is there. Raises MissingBlob, DamagedBlob, UnreadableArchive.
    """
    with as_stored():  # a reader who sees masks may be the one who opens it
        _unpack(session, heard)
    session.refresh_from_db()


def _unpack(session: Session, heard: Heard) -> None:
    with transaction.atomic():
        archive = _held(session)
        if archive is not None:
            Archive.objects.filter(pk=archive.pk).update(opening=timezone.now())
    if archive is not None:
        data = contents(session, [archive.sha])[archive.sha]
        if _put_back(session, data, heard):
            _finish(session, archive)


def _held(session: Session) -> Archive | None:
    """The session's archive, while its row is locked; None if it is unpacked."""
    locked = Session.objects.select_for_update(of=("self",)).filter(pk=session.pk)
    if not locked.filter(archived__isnull=False).exists():
        return None
    list(locked.values("pk"))
    return Archive.objects.filter(session=session.pk).first()


def _put_back(session: Session, data: bytes, heard: Heard) -> bool:
    """Store the rows of an archive; False if another did."""
    shas: list[str] = []
    for part in parts_of(data):
        blobs = [Blob.of(session.team_id, content) for content in part.contents]
        shas += [blob.sha for blob in blobs]
        columns, rows = rows_in(part, shas)
        with transaction.atomic():
            if _held(session) is None:
                return False
            keep(session.team_id, blobs)
            _store(session, BY_NAME[part.table], columns, rows)
        heard()
    return True


def _store(
    session: Session, table: ArchivedTable, columns: list[str], rows: list[Sequence[Any]]
) -> None:
    if table.columns:
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        made = [table.model(**values) for values in named]
        names = [one.removesuffix("_id") for one in table.columns]
        table.model._default_manager.bulk_update(made, names, batch_size=AT_ONCE)
        return
    if table.model is Entry:  # a simulated run may be gone
        place = columns.index("run_id")
        runs = Run.objects.filter(session=session).values_list("pk", flat=True)
        known = {stored_uuid(pk) for pk in runs}
        rows = [row for row in rows if row[place] in known]
    insert(table.model, columns, rows, known=True)


def _finish(session: Session, archive: Archive) -> None:
    with transaction.atomic():
        if _held(session) is None:
            return
        Archive.objects.filter(pk=archive.pk).delete()
        blobs_go.send(Team, team=session.team, shas=[archive.sha])
        mine = Blob.objects.filter(team=session.team, sha=archive.sha)
        objects.forget(mine.values_list("object_name", flat=True))
        mine._raw_delete("default")
        Session.objects.filter(pk=session.pk).update(archived=None, unpacked=timezone.now())
        indexing.ask(session.team)
    if assess.is_due(session):
        assess.ask(session)
