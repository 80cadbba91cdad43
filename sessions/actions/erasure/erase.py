"""Erase: delete sessions and everything made of them, in a job that continues where it stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.accounts.members import LastOwner
from sessions.actions.archives.unpack import open_all
from sessions.actions.erasure import content, people, receipts, remnants, rows, taken
from sessions.actions.erasure.remnants import Heard
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.record.erased import CHUNK, Uses, shas_of
from sessions.actions.search.indexing import forget_some
from sessions.live import hint
from sessions.models import Blob, ErasedBlob, ErasedSession, Erasure, Job, Session, SessionName
from sessions.models.record import objects

KIND = "erase"
TRIES = 5
"""Attempts at the last row of a session, while jobs that were stopped may still write."""

BLOBS, OBJECTS = "contents", "objects"
"""Blobs, and what was removed from object storage, in counts."""

TABLES = {model._meta.db_table for model, _ in rows.TABLES} | {
    model._meta.db_table for model in (Session, SessionName, Blob, ErasedBlob, Job)
}


class NotGone(Exception):
    """Something of an erased session is still in the store."""


def erase_job(running: Running) -> JobOutcome:
    """Run the `erase` job: payload {erasure}."""
    erasure = Erasure.objects.select_related("team").filter(pk=running.payload["erasure"]).first()
    if erasure is None:
        raise PermanentFailure("The erasure no longer exists", "It was deleted.", "Nothing to do.")
    reported, renewed = 0, time.monotonic()

    def heard() -> None:
        nonlocal reported, renewed
        reported += 1
        running.progress(reported, None, "steps")
        if time.monotonic() - renewed > settings.JOB_LEASE_SECONDS / 4:  # a command has no keeper
            renewed = time.monotonic()
            jobs.renew(running.job.pk, running.token)

    carry_out(erasure, heard)
    return JobOutcome({"erasure": str(erasure.pk), "sessions": erasure.sessions.count()})


def carry_out(erasure: Erasure, heard: Heard = lambda: None) -> None:
    """Erase what an erasure names, and write its receipt when nothing is left. Safe to repeat, and
    to interrupt at any point."""
    if erasure.finished is not None:
        return
    collect(erasure, heard)
    for one in erasure.sessions.filter(gone=None).order_by("pk"):
        session = Session.objects.filter(pk=one.session).select_related("team").first()
        if session is not None and erasure.content_only:
            while forget_some(session):
                heard()
            content.erase(session, heard)
        elif session is not None:
            _erase_session(erasure, session, heard)
        ErasedSession.objects.filter(pk=one.pk).update(gone=timezone.now())
    if erasure.kind == Erasure.Kind.MEMBER:
        _erase_member(erasure)
    elif erasure.kind == Erasure.Kind.TEAM:
        people.erase_team(erasure)
    erase_blobs(erasure, heard)
    finish(erasure, heard)


def _erase_member(erasure: Erasure) -> None:
    """Raises PermanentFailure for the last owner: others left since the erasure was asked for."""
    try:
        people.erase_member(erasure, actor_of(erasure))
    except LastOwner as error:
        raise PermanentFailure(
            "The last owner stays", str(error), "Then ask for the erasure again."
        ) from None


def actor_of(erasure: Erasure) -> audit.Actor:
    """Who asked for an erasure, as the audit log names them."""
    return audit.Actor(audit.AuditEntry.Via(erasure.via), erasure.by)


def collect(erasure: Erasure, heard: Heard) -> None:
    """Take the sessions' sub-agents that were stored meanwhile, stop their jobs, count their rows,
    and note their content, once."""
    if rows.name_of(Session) in erasure.counts:
        return
    taken.take_below(erasure)
    ids = list(erasure.sessions.values_list("session", flat=True))
    for start in range(0, len(ids), CHUNK):
        some = ids[start : start + CHUNK]
        named = [str(pk) for pk in some]
        for job in Job.objects.filter(
            team=erasure.team, payload__session__in=named, state__in=("queued", "running")
        ):
            jobs.cancel(job)
        # Counts and receipts are of what is in it.
        open_all(Session.objects.filter(pk__in=some, archived__isnull=False))
        note_blobs(erasure, shas_of(Session.objects.filter(pk__in=some)), heard)
    # Counter's own sum would leave out what is zero.
    counted = Counter(erasure.counts)
    if erasure.content_only:
        counted.update({rows.name_of(Session): 0})
        for session in Session.objects.filter(pk__in=ids):
            counted.update(content.counted(session))
    else:
        counted.update(rows.counted(ids))
    erasure.counts = dict(counted)
    erasure.save(update_fields=["counts"])


def note_blobs(erasure: Erasure, shas: Iterable[str], heard: Heard = lambda: None) -> None:
    """Note content that may be erased, unless something else uses it."""
    listed = list(dict.fromkeys(shas))
    for start in range(0, len(listed), CHUNK):
        made = [ErasedBlob(erasure=erasure, sha=sha) for sha in listed[start : start + CHUNK]]
        ErasedBlob.objects.bulk_create(made, ignore_conflicts=True)
        heard()


def _erase_session(erasure: Erasure, session: Session, heard: Heard) -> None:
    """Delete a session: the index, which needs the texts, what points at it, and its own row."""
    while forget_some(session):
        heard()
    with transaction.atomic():
        beside: Counter[str] = Counter()
        shas = rows.delete_beside(session, _adding(beside))
        note_blobs(erasure, shas)
        erasure.counts = dict(Counter(erasure.counts) + beside)
        erasure.save(update_fields=["counts"])
    for tried in range(TRIES):
        rows.delete(session, lambda *_: heard())
        try:
            with transaction.atomic():
                mine = Session.objects.select_for_update().filter(pk=session.pk)
                mine.delete()
                hint(f"sessions:{session.team_id}", session.version + 1)
            return
        except IntegrityError:  # a job wrote once more before it was stopped
            if tried == TRIES - 1:
                raise


def _adding(counts: Counter[str]) -> Callable[[str, int], None]:
    def add(table: str, many: int) -> None:
        counts[table] += many

    return add


def erase_blobs(erasure: Erasure, heard: Heard) -> None:
    """Delete the content that nothing uses any more, and content that never got a use."""
    uses = Uses(erasure.team)
    last = Blob.objects.filter(team=erasure.team).aggregate(last=Max("pk"))["last"] or 0
    noted = erasure.blobs.filter(erased=False)
    known = set(noted.values_list("sha", flat=True))
    if erasure.kind == Erasure.Kind.TEAM:
        note_blobs(erasure, uses.unused(last), heard)
    elif set(uses.unused(last)) - known:
        # A context is recorded moments after the knowledge in it.
        until = time.monotonic() + settings.ERASE_GRACE_SECONDS
        while time.monotonic() < until:
            heard()
            time.sleep(min(1.0, until - time.monotonic()))
        note_blobs(erasure, Uses(erasure.team).unused(last), heard)
    uses = Uses(erasure.team)
    shas = list(noted.values_list("sha", flat=True).order_by("sha"))
    for start in range(0, len(shas), CHUNK):
        with transaction.atomic():
            before = uses.objects
            gone = uses.erase_some(shas[start : start + CHUNK])
            erasure.blobs.filter(sha__in=gone).update(erased=True)
            count_objects(erasure, uses.objects - before)
        heard()


def count_objects(erasure: Erasure, many: int) -> None:
    """Count objects that lost their rows, in the transaction that took these."""
    if many:
        erasure.counts = dict(Counter(erasure.counts) + Counter({OBJECTS: many}))
        erasure.save(update_fields=["counts"])


def finish(erasure: Erasure, heard: Heard) -> None:
    """Clean the files of the database, check that nothing is left, and write the receipt. Raises
    ObjectsAway: there is no receipt while an object is left."""
    _check_gone(erasure)
    while objects.remove_forgotten(CHUNK):
        heard()
    remnants.remove(sorted(TABLES), heard)
    blobs = list(erasure.blobs.filter(erased=True).values_list("sha", flat=True))
    kept = erasure.blobs.filter(erased=False).count()
    erasure.counts = erasure.counts | {BLOBS: len(blobs)}
    now = timezone.now()
    receipt = receipts.make(erasure, blobs, kept, now)
    names = {str(pk): name for pk, name in erasure.sessions.values_list("session", "name") if name}
    receipts.keep(receipts.KeptReceipt(receipt, names, erasure.member))
    with transaction.atomic():
        erasure.receipt, erasure.finished = receipts.canonical(receipt), now
        erasure.save(update_fields=["receipt", "finished", "counts"])
        erasure.blobs.all()._raw_delete("default")
        audit.note(
            erasure.team,
            audit.Actor(audit.AuditEntry.Via.RULE, "erasure"),
            "erasure.finished",
            str(erasure.pk),
            sessions=len(receipt["sessions"]),
            contents=len(blobs),
        )


def _check_gone(erasure: Erasure) -> None:
    ids = list(erasure.sessions.values_list("session", flat=True))
    for start in range(0, len(ids), CHUNK):
        some = Session.objects.filter(pk__in=ids[start : start + CHUNK])
        if erasure.content_only:
            some = some.filter(content_erased=None)
        if some.exists():
            raise NotGone
