"""Job queue: enqueue, claim, report progress, finish, and find abandoned jobs."""

import uuid
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from sessions import live
from sessions.actions.jobs import leases
from sessions.actions.jobs.log_lines import REQUEST, note_end
from sessions.actions.jobs.statements import ASKED, BY_ID, CLAIM, REMOVE, UNFINISHED
from sessions.actions.jobs.wakes import heard, wake
from sessions.log_context import ids
from sessions.models import Job, Session, Team
from sessions.models.web.statements import insert_object
from sessions.signals import job_failed

# Delay before the sweeper looks at a job that may begin; the regular wake-up usually arrives first.
WAKE_AGAIN = timedelta(seconds=10)
# No job is asked for later than this: one that seems to be was written before the clock was set
# back.
LONGEST_PAUSE = timedelta(minutes=45)
# Wake-ups sent per sweep; more would only queue up at the same few workers.
WAKES_PER_SWEEP = 20
# After a job failed at all its attempts, its session is left alone so long: what fails thrice
# fails again, and every append would ask for more.
REST = timedelta(minutes=1)


class JobProblem(TypedDict):
    """Why a job failed, for people: what happened, details, and what to do."""

    title: str
    detail: str
    action: str


class Lost(Exception):
    """The job was cancelled or claimed by another attempt: stop silently."""


def enqueue(
    team: Team, kind: str, payload: dict[str, Any], dedupe: str = "", *, after: float = 0
) -> Job:
    """Write the job in the caller's transaction and wake a worker `after` seconds from its commit.

    With `dedupe`, returns an unfinished job with the same key instead. Raises KeyError for an
    unknown kind.
    """
    if kind not in settings.JOB_KINDS:
        raise KeyError(f"unknown kind of job: {kind}")
    look = _next_look() + timedelta(seconds=after)
    if asked := ids().get("request"):
        payload = {**payload, REQUEST: asked}
    job = Job(team=team, kind=kind, payload=payload, dedupe=dedupe, wake_after=look)
    if not insert_object(job, known=bool(dedupe)):
        return Job.objects.get(team=team, dedupe=dedupe, state__in=UNFINISHED)
    live.hint(f"job:{job.id}", job.version)
    transaction.on_commit(lambda: wake(job.id, kind, after), robust=True)
    return job


def ask_for(session: Session, kind: str, *, locked: bool = False, after: float = 0) -> Job:
    """Ask for a job of this kind on a session, to begin `after` seconds from now.

    One unfinished job does for all that asked; it begins now if one of them asks for that.
    Takes the lock of the session's row, unless the caller has it: a job that is about to end looks
    for news under it. One that failed stays the only one of its session: after a rest it is tried
    again.
    """
    if not locked:
        with transaction.atomic():
            Session.objects.select_for_update(of=("self",)).only("id").get(pk=session.pk)
            return ask_for(session, kind, locked=True, after=after)
    payload = {"session": str(session.pk)}
    return ask_once(session.team, kind, payload, f"{kind}:{session.pk}", after=after)


def ask_once(
    team: Team, kind: str, payload: dict[str, Any], dedupe: str, *, after: float = 0
) -> Job:
    """Ask for a job under a key as `ask_for` does for a session; takes no lock."""
    known = {job.state: job for job in ASKED.rows(team=team.pk, dedupe=dedupe)}
    failed = known.pop(Job.State.FAILED, None)
    if failed is None:
        there = next(iter(known.values()), None)
        if there is None:
            return enqueue(team, kind, payload, dedupe, after=after)
        if not after and there.state == Job.State.QUEUED:
            transaction.on_commit(lambda: wake(there.id, kind), robust=True)
        return there
    if failed.finished is None or failed.finished < timezone.now() - REST:
        retry(failed)
    return failed


def claim(job_id: uuid.UUID) -> Job | None:
    """Claim a queued job, or one whose lease ended, for one attempt. Returns None if another
    worker has it, it has ended, or no attempt is left (the job then fails here).

    A lease ends after a server or worker died, which says nothing about the job: that attempt
    does not count. After JOB_LOSSES of them the job fails all the same, because every job ends.
    """
    now = timezone.now()
    token = uuid.uuid4()
    # One statement, so that a duplicate message runs only once.
    if CLAIM.run(
        job=job_id,
        ended=leases.ENDED,
        most_attempts=settings.JOB_ATTEMPTS,
        most_losses=settings.JOB_LOSSES,
        token=token,
        lease_until=now + timedelta(seconds=settings.JOB_LEASE_SECONDS),
        started=now,
        done_units=0,
    ):
        return _announce(job_id)
    lost = Job.objects.filter(id=job_id, state=Job.State.RUNNING, lease_until=leases.ENDED)
    _end(
        lost.filter(losses__gte=settings.JOB_LOSSES),
        job_id,
        state=Job.State.FAILED,
        problem=_lost_too_often(),
    )
    return None


def renew(job_id: uuid.UUID, token: uuid.UUID) -> None:
    """Renew the lease: any other value than before keeps it."""
    until = timezone.now() + timedelta(seconds=settings.JOB_LEASE_SECONDS)
    _held(job_id, token).update(lease_until=until)


def progress(job_id: uuid.UUID, token: uuid.UUID, done: int, total: int | None, unit: str) -> None:
    """Record the progress of the attempt. Raises Lost if it no longer holds the job."""
    written = _held(job_id, token).update(
        done_units=done, total_units=total, unit=unit, version=F("version") + 1
    )
    if not written:
        raise Lost


def finish(
    job_id: uuid.UUID, token: uuid.UUID, result: dict[str, Any], partial: bool = False
) -> None:
    """Finish the job; `partial` if some of it could not be done. Raises Lost."""
    state = Job.State.PARTIAL if partial else Job.State.DONE
    if not _end(_held(job_id, token), job_id, state=state, result=result):
        raise Lost


def remove(job_id: uuid.UUID, token: uuid.UUID) -> None:
    """Delete a successful job that needs no record. Raises Lost."""
    # Nothing refers to jobs that leave no row: what might is not looked up.
    if not REMOVE.run(job=job_id, token=token):
        raise Lost


def refuse(job_id: uuid.UUID, token: uuid.UUID, problem: JobProblem) -> None:
    """Fail the job without another attempt, because it would fail again."""
    _end(_held(job_id, token), job_id, state=Job.State.FAILED, problem=problem)


def put_back(job_id: uuid.UUID, token: uuid.UUID, *, after: float = 0) -> bool:
    """Return an interrupted job to the queue, to begin `after` seconds from now; the attempt does
    not count. Returns False if it is held no longer."""
    put = _held(job_id, token).update(
        state=Job.State.QUEUED,
        attempts=F("attempts") - 1,
        token=None,
        lease_until=None,
        wake_after=timezone.now() + timedelta(seconds=after),
        version=F("version") + 1,
    )
    if put:
        _announce(job_id)
    return bool(put)


def give_up_attempt(job_id: uuid.UUID, token: uuid.UUID, reason: str) -> None:
    """End an attempt without result: queue the job again, or fail it after the last attempt.

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
    pause = settings.JOB_RETRY_SECONDS * attempts
    queued = held.update(
        state=Job.State.QUEUED,
        token=None,
        lease_until=None,
        wake_after=_next_look() + timedelta(seconds=pause),
        version=F("version") + 1,
    )
    if queued:
        wake(job_id, _announce(job_id).kind, pause)


def cancel(job: Job) -> bool:
    """Cancel an unfinished job; its process is killed within seconds. Returns False if it had
    ended."""
    unfinished = Job.objects.filter(id=job.id, state__in=UNFINISHED)
    return _end(unfinished, job.id, state=Job.State.CANCELLED)


def retry(job: Job) -> bool:
    """Queue a failed or cancelled job again, with all its attempts. Returns False for other
    states."""
    with transaction.atomic():
        queued = Job.objects.filter(
            id=job.id, state__in=(Job.State.FAILED, Job.State.CANCELLED)
        ).update(
            state=Job.State.QUEUED,
            attempts=0,
            losses=0,
            problem=None,
            finished=None,
            wake_after=_next_look(),
            version=F("version") + 1,
        )
        if queued:
            _announce(job.id)
            transaction.on_commit(lambda: wake(job.id, job.kind), robust=True)
    return bool(queued)


def sweep() -> int:
    """Wake workers for stuck jobs: after a lost message, a dead worker, or a pause between
    attempts. Returns the number woken."""
    leases.end_abandoned()
    now = timezone.now()
    waiting = Q(state=Job.State.QUEUED)
    dead = Q(state=Job.State.RUNNING, lease_until=leases.ENDED)
    due = Q(wake_after__lte=now) | Q(wake_after__gt=now + LONGEST_PAUSE)
    found = list(
        Job.objects.filter(waiting | dead, due)
        .order_by("created")
        .values_list("id", "kind")[:WAKES_PER_SWEEP]
    )
    if found:
        ids = [job_id for job_id, _ in found]
        Job.objects.filter(id__in=ids).update(wake_after=now + WAKE_AGAIN)
    for job_id, kind in found:
        wake(job_id, kind)
    return len(found)


def requeue_all() -> None:
    """Requeue jobs when a server starts that is alone on its database: jobs marked as running were
    left by a dead process."""
    now = timezone.now()
    running = Job.objects.filter(state=Job.State.RUNNING)
    running.update(lease_until=leases.ENDED, wake_after=now)
    Job.objects.filter(state=Job.State.QUEUED).update(wake_after=now)


def _next_look() -> datetime:
    return timezone.now() + (WAKE_AGAIN if heard() else timedelta(0))


def _held(job_id: uuid.UUID, token: uuid.UUID) -> QuerySet[Job]:
    return Job.objects.filter(id=job_id, token=token, state=Job.State.RUNNING)


def _end(jobs: QuerySet[Job], job_id: uuid.UUID, **values: Any) -> bool:
    end = {"token": None, "lease_until": None, "finished": timezone.now()} | values
    with transaction.atomic():
        ended = jobs.update(version=F("version") + 1, **end)
        if ended:
            job = _announce(job_id)
            if job.state == Job.State.FAILED:
                job_failed.send(Job, job=job)
            transaction.on_commit(lambda: note_end(job), robust=True)
    return bool(ended)


def _announce(job_id: uuid.UUID) -> Job:
    job: Job = BY_ID.first(job=job_id)
    live.hint(f"job:{job_id}", job.version)
    return job


def _lost_too_often() -> JobProblem:
    return {
        "title": "The job did not finish",
        "detail": f"Its server or worker stopped {settings.JOB_LOSSES} times while it ran.",
        "action": "Look in the server's log why it stopped, then retry the job.",
    }


def _worn_out(reason: str) -> JobProblem:
    return {
        "title": "The job did not finish",
        "detail": f"{reason} It was tried {settings.JOB_ATTEMPTS} times.",
        "action": "Retry it. If it fails again, the input may be too large: split it.",
    }
