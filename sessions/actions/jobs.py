"""Jobs: ask for one, claim it, report progress, end it, find the ones nobody tends."""

import uuid
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from sessions import live
from sessions.actions.wakes import heard, wake
from sessions.models import Job, Team

# Between asking and the sweeper's first look: the ordinary wake-up should have come by then.
WAKE_AGAIN = timedelta(seconds=10)
# Messages sent per sweep; more would only queue up before the same few workers.
WAKES_PER_SWEEP = 20
UNFINISHED = (Job.State.QUEUED, Job.State.RUNNING)


class Problem(TypedDict):
    """Why a job failed, for people: what happened, in more words, and what they can do."""

    title: str
    detail: str
    action: str


class Lost(Exception):
    """The job was cancelled, or another attempt has taken it over: stop without a word."""


def enqueue(team: Team, kind: str, payload: dict[str, Any], dedupe: str = "") -> Job:
    """Writes the job in the caller's transaction and wakes a worker once that commits.

    With `dedupe`, an unfinished job of the same key is returned instead. Raises KeyError for an
    unknown kind.
    """
    if kind not in settings.JOB_KINDS:
        raise KeyError(f"no such kind of job: {kind}")
    # Usually it is there, and to ask costs less than to be refused.
    same = Job.objects.filter(team=team, dedupe=dedupe, state__in=UNFINISHED)
    if dedupe and (known := same.first()):
        return known
    job = Job(team=team, kind=kind, payload=payload, dedupe=dedupe)
    job.wake_after = _next_look()
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError:
        if not dedupe:
            raise
        return same.get()
    live.hint(f"job:{job.id}", job.version)
    transaction.on_commit(lambda: wake(job.id), robust=True)
    return job


def claim(job_id: uuid.UUID) -> Job | None:
    """Takes a queued job, or one whose lease ran out, for one attempt; None if somebody else
    has it, it has ended, or there is no attempt left (it then fails here)."""
    now = timezone.now()
    free = Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, lease_until__lt=now)
    token = uuid.uuid4()
    taken = (
        Job.objects.filter(free, id=job_id, attempts__lt=settings.JOB_ATTEMPTS)
        # One statement, so that a message delivered twice runs once.
        .update(
            state=Job.State.RUNNING,
            token=token,
            attempts=F("attempts") + 1,
            lease_until=now + timedelta(seconds=settings.JOB_LEASE_SECONDS),
            started=now,
            done_units=0,
            version=F("version") + 1,
        )
    )
    if taken:
        return _told(job_id)
    _end(
        Job.objects.filter(free, id=job_id, attempts__gte=settings.JOB_ATTEMPTS),
        job_id,
        state=Job.State.FAILED,
        problem=_worn_out("The process that did it disappeared."),
    )
    return None


def renew(job_id: uuid.UUID, token: uuid.UUID) -> None:
    """Keeps the lease for another JOB_LEASE_SECONDS."""
    until = timezone.now() + timedelta(seconds=settings.JOB_LEASE_SECONDS)
    _held(job_id, token).update(lease_until=until)


def progress(job_id: uuid.UUID, token: uuid.UUID, done: int, total: int | None, unit: str) -> None:
    """Notes how far the attempt is; raises Lost when it holds the job no longer."""
    written = _held(job_id, token).update(
        done_units=done, total_units=total, unit=unit, version=F("version") + 1
    )
    if not written:
        raise Lost


def finish(
    job_id: uuid.UUID, token: uuid.UUID, result: dict[str, Any], partial: bool = False
) -> None:
    """Ends the job well; `partial` when some of it could not be done. Raises Lost."""
    state = Job.State.PARTIAL if partial else Job.State.DONE
    if not _end(_held(job_id, token), job_id, state=state, result=result):
        raise Lost


def remove(job_id: uuid.UUID, token: uuid.UUID) -> None:
    """Ends a job of which nobody needs to know that it went well: no row is left. Raises Lost."""
    if not _held(job_id, token).delete()[0]:
        raise Lost


def refuse(job_id: uuid.UUID, token: uuid.UUID, problem: Problem) -> None:
    """Ends the job badly where another attempt would end the same way."""
    _end(_held(job_id, token), job_id, state=Job.State.FAILED, problem=problem)


def put_back(job_id: uuid.UUID, token: uuid.UUID) -> None:
    """Ends an attempt that was cut short by us, not by the job: it does not count."""
    put = _held(job_id, token).update(
        state=Job.State.QUEUED,
        attempts=F("attempts") - 1,
        token=None,
        lease_until=None,
        wake_after=timezone.now(),
        version=F("version") + 1,
    )
    if put:
        _told(job_id)


def give_up_attempt(job_id: uuid.UUID, token: uuid.UUID, reason: str) -> None:
    """An attempt ended without result: the job waits for the next one, or fails after the last.

    `reason` is a sentence without content.
    """
    held = _held(job_id, token)
    if _end(
        held.filter(attempts__gte=settings.JOB_ATTEMPTS),
        job_id,
        state=Job.State.FAILED,
        problem=_worn_out(reason),
    ):
        return
    attempts = held.values_list("attempts", flat=True).first() or 0
    queued = held.update(
        state=Job.State.QUEUED,
        token=None,
        lease_until=None,
        wake_after=timezone.now() + timedelta(seconds=settings.JOB_RETRY_SECONDS * attempts),
        version=F("version") + 1,
    )
    if queued:
        _told(job_id)


def cancel(job: Job) -> bool:
    """Ends a job that has not ended yet; its process is killed within seconds. False if it had."""
    unfinished = Job.objects.filter(id=job.id, state__in=UNFINISHED)
    return _end(unfinished, job.id, state=Job.State.CANCELLED)


def retry(job: Job) -> bool:
    """Queues a failed or cancelled job again, with all its attempts; False if it is neither."""
    with transaction.atomic():
        queued = Job.objects.filter(
            id=job.id, state__in=(Job.State.FAILED, Job.State.CANCELLED)
        ).update(
            state=Job.State.QUEUED,
            attempts=0,
            problem=None,
            finished=None,
            wake_after=_next_look(),
            version=F("version") + 1,
        )
        if queued:
            _told(job.id)
            transaction.on_commit(lambda: wake(job.id), robust=True)
    return bool(queued)


def sweep() -> int:
    """Wakes workers for jobs that wait for nobody knows what: a lost message, a worker that
    died, a pause before the next attempt. Returns how many were woken."""
    now = timezone.now()
    waiting = Q(state=Job.State.QUEUED)
    dead = Q(state=Job.State.RUNNING, lease_until__lt=now)
    ids = list(
        Job.objects.filter(waiting | dead, wake_after__lte=now)
        .order_by("created")
        .values_list("id", flat=True)[:WAKES_PER_SWEEP]
    )
    if ids:
        Job.objects.filter(id__in=ids).update(wake_after=now + WAKE_AGAIN)
    for job_id in ids:
        wake(job_id)
    return len(ids)


def requeue_all() -> None:
    """At the start of a server that is the only one on its database: nobody else can be working,
    so what is marked as running was left by a process that died."""
    now = timezone.now()
    running = Job.objects.filter(state=Job.State.RUNNING)
    running.update(lease_until=now - timedelta(seconds=1), wake_after=now)
    Job.objects.filter(state=Job.State.QUEUED).update(wake_after=now)


def _next_look() -> datetime:
    return timezone.now() + (WAKE_AGAIN if heard() else timedelta(0))


def _held(job_id: uuid.UUID, token: uuid.UUID) -> QuerySet[Job]:
    return Job.objects.filter(id=job_id, token=token, state=Job.State.RUNNING)


def _end(jobs: QuerySet[Job], job_id: uuid.UUID, **values: Any) -> bool:
    ended = jobs.update(
        token=None, lease_until=None, finished=timezone.now(), version=F("version") + 1, **values
    )
    if ended:
        _told(job_id)
    return bool(ended)


def _told(job_id: uuid.UUID) -> Job:
    job = Job.objects.get(id=job_id)
    live.hint(f"job:{job_id}", job.version)
    return job


def _worn_out(reason: str) -> Problem:
    return {
        "title": "The job did not finish",
        "detail": f"{reason} It was tried {settings.JOB_ATTEMPTS} times.",
        "action": "Try it again; if it ends the same way, the input is more than this server "
        "can take in one go: split it.",
    }
