"""Check the store in the background, a few seconds at a time."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.db import transaction

from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, Running
from sessions.actions.record import checks
from sessions.models import Job

KIND = "verify"
SLICE_SECONDS = 5.0
"""After which the job makes room for others; the next one continues."""
PAUSE_SECONDS = 3.0
"""Between two of them."""
MOST_KEPT = 20
"""Findings kept with the result; `contextlab verify` lists all."""


class LastCheck(NamedTuple):
    """The newest check of the store: its job, and a sentence; `good` is None without a result."""

    job: Job
    good: bool | None
    text: str


def ask() -> Job:
    """Queue a check of the whole store, as a job of the local team."""
    return jobs.enqueue(local_team(), KIND, {}, KIND, after=PAUSE_SECONDS)


def verify(running: Running) -> JobOutcome | None:
    """Run the `verify` job: payload {} or where to continue, and what was found so far."""
    place: dict[str, Any] = {"stage": "", "after": "", "rows": 0, "findings": 0, "named": []}
    place |= running.payload
    total, begun = checks.total(), time.monotonic()
    for part in checks.parts(place["stage"], place["after"]):
        place["stage"], place["after"] = part.stage, part.after
        place["rows"] += part.rows
        place["findings"] += len(part.findings)
        place["named"] = [*place["named"], *map(str, part.findings)][:MOST_KEPT]
        running.progress(min(place["rows"], total), total, "rows")
        # A part without a place to continue from is the last of its stage.
        if part.after and time.monotonic() - begun > SLICE_SECONDS:
            _continue(running, place)
            return None
    result = {name: place[name] for name in ("rows", "findings", "named")}
    return JobOutcome(result, partial=bool(place["findings"]))


def _continue(running: Running, place: dict[str, Any]) -> None:
    with transaction.atomic():
        jobs.remove(running.job.id, running.token)
        jobs.enqueue(running.team, KIND, place, KIND, after=PAUSE_SECONDS)


def last_check() -> LastCheck | None:
    """The newest check of the store, if there was one."""
    job = Job.objects.filter(kind=KIND).order_by("-created").first()
    if job is None:
        return None
    day = f"{job.finished or job.created:%Y-%m-%d %H:%M} UTC"
    if not job.is_finished:
        return LastCheck(job, None, f"running since {day}")
    if job.result is None:
        return LastCheck(job, None, f"{job.state} {day}; run `contextlab verify`")
    if found := job.result["findings"]:
        many = "1 finding" if found == 1 else f"{found} findings"
        more = f"first: {job.result['named'][0]}. Run `contextlab verify` for all"
        return LastCheck(job, False, f"{day}: {many}, {more}")
    return LastCheck(job, True, f"{day}: nothing wrong in {job.result['rows']:,} rows")
