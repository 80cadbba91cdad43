"""`/metrics`, as Prometheus reads it: what this process counted, and the queue of jobs."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Iterator
from time import monotonic, time
from typing import Any

from django.conf import settings
from django.db.models import Count, Min
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sessions.models import Job

KEPT_SECONDS = 5.0
"""How long the figures of the queue are reused, however often they are asked for."""
CONTENT_TYPE = CONTENT_TYPE_LATEST


def allowed(authorization: bytes) -> bool:
    """Whether a request with this header may read the figures: with CONTEXTLAB_METRICS_TOKEN who
    has it, without it anyone, as long as only this machine can reach the server."""
    if not settings.METRICS_TOKEN:
        return not settings.PUBLIC
    return hmac.compare_digest(authorization, f"Bearer {settings.METRICS_TOKEN}".encode())


def text() -> bytes:
    """All figures. Reads the database; raises DatabaseError."""
    return bytes(generate_latest(REGISTRY))


class Queue(Collector):
    """Jobs by state, and how long the oldest one waits, from the database, for all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[list[Metric], float] = ([], 0.0)

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not read the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The figures, at most KEPT_SECONDS old."""
        with self._lock:
            found, until = self._known
            if monotonic() >= until:
                found = _queue()
                self._known = found, monotonic() + KEPT_SECONDS
            return iter(found)


def _queue() -> list[Metric]:
    count = GaugeMetricFamily("contextlab_jobs", "Jobs", labels=("kind", "state"))
    age = GaugeMetricFamily(
        "contextlab_job_oldest_seconds", "Age of the oldest such job", labels=("kind", "state")
    )
    states = (Job.State.QUEUED, Job.State.RUNNING, Job.State.FAILED)
    rows: Any = (
        Job.objects.filter(state__in=states)
        .values("kind", "state")
        .annotate(jobs=Count("id"), oldest=Min("created"))
    )
    now = time()
    # Zero is a sample too: a rule on a series that is missing never fires, and never ends.
    counted = {(kind, str(state)): 0 for kind in settings.JOB_KINDS for state in states}
    for row in rows:
        labels = (row["kind"], row["state"])
        counted[labels] = row["jobs"]
        age.add_metric(labels, max(now - row["oldest"].timestamp(), 0))
    for labels, jobs in counted.items():
        count.add_metric(labels, jobs)
    return [count, age]
