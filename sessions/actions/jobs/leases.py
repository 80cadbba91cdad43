"""Leases of running jobs, watched by a clock that no change of the time moves."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from time import monotonic

from django.conf import settings
from django.utils import timezone

from sessions.models import Job

ENDED = datetime(1970, 1, 1, tzinfo=UTC)
"""The lease of a job whose holder is gone."""

_seen: dict[uuid.UUID, tuple[datetime | None, float]] = {}
"""The lease of each running job, and when it was first seen, in seconds."""


def end_abandoned() -> None:
    """End each lease that was not renewed for JOB_LEASE_SECONDS of watching."""
    held = dict(
        Job.objects.filter(state=Job.State.RUNNING)
        .exclude(lease_until=ENDED)
        .values_list("id", "lease_until")
    )
    for job_id in _seen.keys() - held.keys():
        del _seen[job_id]
    now = monotonic()
    for job_id, lease in held.items():
        known, since = _seen.get(job_id, (None, now))
        if known != lease:
            _seen[job_id] = lease, now
        elif now - since >= settings.JOB_LEASE_SECONDS:
            mine = Job.objects.filter(id=job_id, state=Job.State.RUNNING, lease_until=lease)
            mine.update(lease_until=ENDED, wake_after=timezone.now())
