"""Turns: which job a woken worker takes. Teams take turns, so that none waits for all that
another team asked for; within a team, so do what live sessions wait for and all else."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import defaultdict
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import Min, Q
from django.utils import timezone

from sessions.actions.jobs import jobs, leases
from sessions.actions.jobs.wakes import queue_of
from sessions.models import Job, Team
from sessions.models.web.statements import Statement, given_time, given_uuid

SLICE_SECONDS = 2.0
"""How long a job that can go on later runs while another waits (our choice: about one long log)."""

TRIED = 20
"""Jobs of a kind that are tried, if other workers claim them at the same moment."""


def _due(soon: object, far: object) -> Q:
    return Q(state=Job.State.QUEUED) & (Q(wake_after__lte=soon) | Q(wake_after__gt=far))


_WAITING = Statement(
    lambda: (
        Job.objects.filter(
            _due(given_time("soon"), given_time("far"))
            | Q(state=Job.State.RUNNING, lease_until=given_time("ended"))
            | Q(id=given_uuid("job"), state=Job.State.QUEUED)
        )
        .values_list("team_id", "kind")
        .annotate(first=Min("created"))
    )
)


class _Waiting(NamedTuple):
    """Jobs of one kind that a team waits for, and when it asked for the first of them."""

    team: uuid.UUID
    kind: str
    first: datetime


_turns = itertools.count(1)
_last: defaultdict[tuple[uuid.UUID, str], int] = defaultdict(int)
"""The number of the last turn of each team, and of each of its queues, in this process."""
_lock = threading.Lock()


def take(job_id: uuid.UUID, queue: str = "") -> Job | None:
    """Claim the job whose turn it is, for a worker that was woken for `job_id`: the one that waits
    longest, of the team whose last turn was longest ago. With `queue`, only jobs of that queue.

    As many jobs are claimed as workers are woken. Returns None if nothing waits.
    """
    for waiting in sorted(_waiting(job_id, queue), key=_order):
        for found in _first_of(waiting, job_id):
            if claimed := jobs.claim(found):
                with _lock:
                    turn = next(_turns)
                    _last[waiting.team, ""] = _last[waiting.team, queue_of(waiting.kind)] = turn
                return claimed
    return None


def others_wait(team: Team) -> bool:
    """Whether a job that could begin now belongs to another team, or is one that a live session of
    this team waits for."""
    others = ~Q(team=team) | Q(kind__in=settings.LIVE_JOBS)
    return Job.objects.filter(_due(*_bounds()), others).exists()


def _bounds() -> tuple[datetime, datetime]:
    now = timezone.now()
    return now + jobs.WAKE_AGAIN, now + jobs.LONGEST_PAUSE


def _waiting(job_id: uuid.UUID, queue: str) -> list[_Waiting]:
    soon, far = _bounds()
    rows = _WAITING.rows(soon=soon, far=far, ended=leases.ENDED, job=job_id)
    return [_Waiting(*row) for row in rows if queue in ("", queue_of(row[1]))]


def _order(waiting: _Waiting) -> tuple[int, int, datetime]:
    team, queue = waiting.team, queue_of(waiting.kind)
    return _last[team, ""], _last[team, queue], waiting.first


def _first_of(waiting: _Waiting, job_id: uuid.UUID) -> list[uuid.UUID]:
    unfinished = Q(state=Job.State.RUNNING, lease_until=leases.ENDED) | _due(*_bounds())
    # From the first on: before it are the team's finished jobs, which may be many.
    since = Job.objects.filter(team=waiting.team, kind=waiting.kind, created__gte=waiting.first)
    found = since.filter(unfinished | Q(id=job_id, state=Job.State.QUEUED))
    return list(found.order_by("created").values_list("id", flat=True)[:TRIED])
