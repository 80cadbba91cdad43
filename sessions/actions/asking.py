"""Asking for work on a session that every append may ask for: one job at a time does for all."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from sessions.actions import jobs
from sessions.models import Job, Session

REST = timedelta(minutes=1)
"""After a job failed at all its attempts, the session is left alone so long: what fails thrice
fails again, and every append would ask for more."""


def ask_for(session: Session, kind: str) -> Job:
    """Ask for a job of this kind; one unfinished job does for all that asked.

    Takes the lock of the session's row: a job that is about to end looks for news under it. One
    that failed stays the only one of its session: after a rest it is tried again.
    """
    key = f"{kind}:{session.pk}"
    with transaction.atomic():
        rows = Session.objects.select_for_update(of=("self",)).select_related("team")
        locked = rows.only("id", "team__id").get(pk=session.pk)
        failed = Job.objects.for_team(locked.team).filter(dedupe=key, state=Job.State.FAILED)
        if (job := failed.first()) is not None:
            if job.finished is None or job.finished < timezone.now() - REST:
                jobs.retry(job)
            return job
        return jobs.enqueue(locked.team, kind, {"session": str(session.pk)}, key)
