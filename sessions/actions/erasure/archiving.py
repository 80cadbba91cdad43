"""Archiving: sessions older than some days are packed, and unpacked when opened."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.archives.packed import AT_ONCE, TABLES, PackedSession, pack, texts_in
from sessions.actions.erasure.age import at_work, ids, older_than
from sessions.actions.erasure.holds import held, on_hold
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.record.erased import CHUNK, Uses
from sessions.actions.search.indexing import forget_some, merge_soon
from sessions.models import Archive, AuditEntry, Blob, Block, Job, Retention, Session, Team
from sessions.models.record.blobs import DamagedBlob, keep, sha256
from sessions.models.record.values import MissingBlob, contents

log = logging.getLogger(__name__)

KIND = "archive"
EVERY = timedelta(days=1)
SESSIONS = 100
"""Sessions after which their contents are deleted, which takes a look at all that the team has."""
TURN = 60.0
"""Seconds after which another job continues, so that others get their turn."""
STALE = timedelta(hours=1)
"""Time after which an unpacking that did not end counts as given up."""

RULE = audit.Actor(AuditEntry.Via.RULE, "archiving")

Heard = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Cold:
    """What archiving packs: sessions, bytes of their messages, how many more a hold keeps, and how
    many of them are still at work, so are packed later."""

    sessions: int
    bytes: int
    held: int
    at_work: int


def cold(team: Team, days: int | None, now: datetime) -> Cold:
    """Sessions older than so many days, and not unpacked since: a dry run. The demo and what is on
    hold stay."""
    if days is None:
        return Cold(0, 0, 0, 0)
    rows, kept = _older(team, days, now), on_hold(team)
    if kept is None:
        return Cold(0, 0, rows.count(), 0)
    every, on = _weight(rows), _weight_among(rows, kept)
    working, quiet = rows.filter(at_work(now)), rows.exclude(at_work(now))
    many = working.count() - _weight_among(working, kept)["sessions"]
    many += _weight_among(quiet, _busy(team) - kept)["sessions"]
    left = every - on
    return Cold(left["sessions"], left["bytes"], on["sessions"], many)


def _weight(rows: QuerySet[Session, Session]) -> Counter[str]:
    """How many sessions these are, and the bytes of their messages, which no archive holds."""
    size = Block.objects.filter(session__in=rows.values("pk")).aggregate(n=Sum("bytes"))["n"]
    return Counter(sessions=rows.count(), bytes=size or 0)


def _weight_among(rows: QuerySet[Session, Session], some: set[UUID]) -> Counter[str]:
    found, listed = Counter[str](), list(some)
    for start in range(0, len(listed), CHUNK):
        found += _weight(rows.filter(pk__in=listed[start : start + CHUNK]))
    return found


def _older(team: Team, days: int, now: datetime) -> QuerySet[Session, Session]:
    """Sessions older than so many days with something to pack, not unpacked since."""
    return older_than(team, days, now).filter(
        Q(unpacked=None) | Q(unpacked__lt=now - timedelta(days=days)),
        content_erased=None,
        archived=None,
        block_count__gt=0,
    )


def _free(team: Team, some: list[UUID]) -> list[UUID]:
    """Those of these sessions without unfinished jobs and holds."""
    busy = _busy(team)
    done = [pk for pk in some if pk not in busy]
    kept = held(team, done)
    return [pk for pk in done if pk not in kept]


def _busy(team: Team) -> set[UUID]:
    """The sessions with unfinished jobs."""
    jobs = Job.objects.filter(team=team, state__in=(Job.State.QUEUED, Job.State.RUNNING))
    named = jobs.filter(payload__session__isnull=False)
    return set(map(UUID, named.values_list("payload__session", flat=True)))


@dataclass(frozen=True, slots=True)
class Archives:
    """The archives of a team: how many, bytes as stored, and bytes of the messages in them."""

    sessions: int
    bytes: int
    text_bytes: int


def archives_of(team: Team) -> Archives:
    """Count the archives of a team."""
    rows = Archive.objects.filter(session__team=team)
    found = rows.aggregate(n=Count("pk"), size=Sum("bytes"), texts=Sum("text_bytes"))
    return Archives(found["n"], found["size"] or 0, found["texts"] or 0)


def change(team: Team, days: int | None, actor: audit.Actor) -> Retention:
    """Set after how many days a team's sessions are archived, None for never; the next sweep
    begins with it."""
    with transaction.atomic():
        row, _ = Retention.objects.get_or_create(team=team)
        before = {"days": row.archive_days}
        row.archive_days, row.archive_looked = days, None
        row.save()
        now = {"days": days}
        audit.note(team, actor, "archiving.changed", team.slug, before=before, now=now)
    return row


def sweep(now: datetime) -> int:
    """Queue the archiving of teams that were not looked at for a day; return how many."""
    waiting = Q(archive_looked=None) | Q(archive_looked__lt=now - EVERY)
    asked = 0
    for row in Retention.objects.filter(waiting, archive_days__isnull=False):
        mine = Retention.objects.filter(waiting, pk=row.pk)
        if mine.update(archive_looked=now):  # of several servers, one
            asked += ask(row.team) is not None
    return asked


def ask(team: Team) -> Job:
    """Queue the archiving of a team's cold sessions, by its rule."""
    return jobs.ask_once(team, KIND, {}, f"{KIND}:{team.pk}")


def archive_job(running: Running) -> None:
    """Run the `archive` job: no payload. Leaves no row on success."""
    team = running.team
    row = Retention.objects.filter(team=team).first()
    until, done = time.monotonic() + TURN, 0

    def heard() -> None:
        nonlocal done
        done += 1
        running.progress(done, None, "steps")

    archive(team, row.archive_days if row else None, RULE, heard, lambda: time.monotonic() > until)
    with transaction.atomic():
        jobs.remove(running.job.id, running.token)
        if time.monotonic() > until:
            ask(team)


def archive(
    team: Team,
    days: int | None,
    actor: audit.Actor,
    heard: Heard = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Archive a team's cold sessions until `stop`, and end what was interrupted; return how many
    were archived. Safe to repeat, and to interrupt at any point."""
    given_up = Q(opening__lt=timezone.now() - STALE)
    archives = Archive.objects.filter(session__team=team)
    archives.filter(given_up).update(opening=None, loose=True)
    _tidy(team, heard)
    done, last = 0, UUID(int=0)
    if days is None:
        return done
    now = timezone.now()
    idle = ids(_older(team, days, now).exclude(at_work(now)))
    while some := list(idle.filter(pk__gt=last)[:SESSIONS]):
        made, last = 0, some[-1]
        for pk in _free(team, some):
            if stop():
                break
            made += _archive_one(team, pk)
            heard()
        _tidy(team, heard)
        done += made
        if made:
            audit.note(team, actor, "sessions.archived", team.slug, sessions=made, days=days)
        if stop():
            break
    return done


def _archive_one(team: Team, pk: UUID) -> bool:
    """Archive a session; False if it changed meanwhile, or cannot be read. What the archive holds
    stays where it was until `_tidy`."""
    session = Session.objects.for_team(team).select_related("team").filter(pk=pk).first()
    if session is None:
        return False
    try:
        packed = pack(session)
    except (MissingBlob, DamagedBlob):
        log.warning("session %s cannot be archived: its content is damaged", pk)
        return False
    return _begin(session, packed)


def _begin(session: Session, packed: PackedSession) -> bool:
    sha = sha256(packed.data)
    # Not compressed again.
    blob = Blob(team_id=session.team_id, sha=sha, size=len(packed.data), data=packed.data)
    with transaction.atomic():
        mine = Session.objects.filter(
            pk=session.pk, version=session.version, archived=None, erasing=None
        )
        if not list(mine.select_for_update(of=("self",)).values("pk")) or any(
            table.rows_of(session).count() != packed.rows.get(table.name, 0) for table in TABLES
        ):
            return False
        keep(session.team_id, [blob])
        Archive.objects.create(
            session=session,
            sha=sha,
            rows=packed.rows,
            bytes=len(packed.data),
            text_bytes=packed.text_bytes,
        )
        mine.update(archived=timezone.now())
    return True


def _tidy(team: Team, heard: Heard) -> None:
    """Delete what archives hold: words of the index, rows, and the contents that nothing else
    uses."""
    loose = Archive.objects.filter(session__team=team, loose=True, opening=None)
    shas: dict[str, None] = {}
    gone: list[UUID] = []
    for archive in loose.select_related("session__team")[:SESSIONS]:
        while forget_some(archive.session):
            heard()
        if _trim(archive.session, heard):
            data = contents(archive.session, [archive.sha])[archive.sha]
            shas |= dict.fromkeys(map(sha256, texts_in(data)))
            gone.append(archive.pk)
    if gone:
        uses = Uses(team)
        listed = [sha for sha in shas if sha not in uses]
        for start in range(0, len(listed), CHUNK):
            uses.erase_some(listed[start : start + CHUNK])
            heard()
        Archive.objects.filter(pk__in=gone).update(loose=False)
        merge_soon()


def _trim(session: Session, heard: Heard) -> bool:
    """Delete the rows that an archive holds; False if it is being unpacked."""
    for table in reversed(TABLES):
        while True:
            with transaction.atomic():
                if not _rests(session):
                    return False
                keys = list(table.rows_of(session).values_list("pk", flat=True)[:AT_ONCE])
                some = table.model._default_manager.filter(pk__in=keys)
                if table.columns:
                    some.update(**dict.fromkeys(table.columns, table.empty))
                else:
                    some._raw_delete("default")
            if not keys:
                break
            heard()
    return True


def _rests(session: Session) -> bool:
    """Whether a session is archived and not being unpacked; locks its row."""
    list(Session.objects.select_for_update(of=("self",)).filter(pk=session.pk).values("pk"))
    return Archive.objects.filter(session=session.pk, opening=None).exists()


def sessions_with(team: Team, holds: Callable[[bytes], bool]) -> Iterable[UUID]:
    """The archived sessions of a team with a content for which `holds` is true. Reads all
    archives."""
    rows = Session.objects.for_team(team).filter(archived__isnull=False, erasing=None)
    for session in rows.select_related("archive").iterator():
        data = contents(session, [session.archive.sha])[session.archive.sha]
        if any(map(holds, texts_in(data))):
            yield session.pk
