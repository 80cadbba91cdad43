"""The state of an installation: queues, processes, storage, slow queries, failed jobs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client import REGISTRY

from sessions import metrics
from sessions.actions.operations.seen import SAY_SECONDS
from sessions.models import Job, RemovedObject, SeenProcess, StoredBytes, Team

FAILED_DAYS, FAILED_SHOWN = 14, 20
LATE = timedelta(seconds=3 * SAY_SECONDS)
"""After this time without a word a process counts as gone."""
SLOW_SECONDS = 1.0
SLOW_SHOWN = 10


def status() -> dict[str, Any]:
    """All of it as JSON has it; sizes in bytes, ages in seconds. Names teams, never content."""
    return {
        "queues": queues(),
        "processes": processes(),
        "storage": storage(),
        "slow": slow(),
        "failed": [described(job) for job in failed()],
    }


def queues() -> list[dict[str, Any]]:
    """Jobs that wait and run, by queue and kind, with the age of the oldest that waits."""
    now = timezone.now()
    found: dict[str, dict[str, Any]] = {
        name: {"queue": name, "queued": 0, "running": 0, "oldest_seconds": None, "kinds": {}}
        for name in settings.JOB_QUEUES
    }
    rows: Any = (
        Job.objects.filter(state__in=(Job.State.QUEUED, Job.State.RUNNING))
        .values("kind", "state")
        .annotate(jobs=Count("id"), oldest=Min("created"))
    )
    for row in rows:
        queue = found["live" if row["kind"] in settings.LIVE_JOBS else "batch"]
        queue[row["state"]] += row["jobs"]
        queue["kinds"][row["kind"]] = queue["kinds"].get(row["kind"], 0) + row["jobs"]
        if row["state"] == Job.State.QUEUED:
            age = max((now - row["oldest"]).total_seconds(), 0.0)
            queue["oldest_seconds"] = max(age, queue["oldest_seconds"] or 0.0)
    return list(found.values())


def processes() -> list[dict[str, Any]]:
    """Web servers and workers of the last day, those that run first."""
    now = timezone.now()
    rows = SeenProcess.objects.order_by("stopped", "-seen")
    return [
        {
            "kind": row.kind,
            "host": row.host,
            "pid": row.pid,
            "version": row.version,
            "state": "stopped" if row.stopped else "lost" if now - row.seen > LATE else "running",
            "started": row.started,
            "seen": row.seen,
        }
        for row in rows
    ]


def storage() -> dict[str, Any]:
    """The size of the database, where objects are, and the content of each team, largest
    first."""
    rows = StoredBytes.objects.select_related("team").order_by("-bytes")
    teams = [
        {"team": row.team.slug, "name": row.team.name, "bytes": row.bytes, "blobs": row.blobs}
        for row in rows
    ]
    return {
        "database_bytes": _database_bytes(),
        "objects": settings.BLOBS or None,
        "objects_to_remove": RemovedObject.objects.count(),
        "teams": teams,
        "team_count": Team.objects.count(),
    }


def _database_bytes() -> int | None:
    if connection.vendor == "sqlite":
        name = Path(connection.settings_dict["NAME"])
        return sum(path.stat().st_size for path in name.parent.glob(f"{name.name}*"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        row = cursor.fetchone()
    return int(row[0]) if row else None


_STATEMENTS = """
    SELECT query, calls, total_exec_time / calls, max_exec_time FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY total_exec_time DESC LIMIT %s
"""


def slow() -> dict[str, Any]:
    """The queries that took most time, by pg_stat_statements, which has no values of parameters;
    without it the requests to this server that took longest."""
    if connection.vendor == "postgresql":
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(_STATEMENTS, [SLOW_SHOWN])
                rows = cursor.fetchall()
        except DatabaseError:  # not installed, or not for this user
            pass
        else:
            names = ("what", "times", "mean_ms", "worst_ms")
            return {"of": "queries", "rows": [dict(zip(names, row, strict=True)) for row in rows]}
    return {"of": "requests", "rows": _slow_requests()}


def _slow_requests() -> list[dict[str, Any]]:
    """Routes by how many answers took SLOW_SECONDS or longer, since this process started."""
    name = metrics.REQUEST_SECONDS._name
    found: dict[str, dict[str, Any]] = {}
    for family in REGISTRY.collect():
        if family.name != name:
            continue
        for sample in family.samples:
            route = found.setdefault(sample.labels["route"], {"below": 0.0, "all": 0.0, "sum": 0.0})
            if sample.name == f"{name}_sum":
                route["sum"] = sample.value
            elif sample.name == f"{name}_count":
                route["all"] = sample.value
            elif sample.labels.get("le") == str(SLOW_SECONDS):
                route["below"] = sample.value
    rows = [
        {
            "what": route,
            "times": int(one["all"]),
            "slow": int(one["all"] - one["below"]),
            "mean_ms": one["sum"] / one["all"] * 1000,
        }
        for route, one in found.items()
        if one["all"] > one["below"]
    ]
    return sorted(rows, key=lambda row: -row["slow"])[:SLOW_SHOWN]


def failed() -> list[Job]:
    """The newest jobs of all teams that failed."""
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    rows = Job.objects.filter(state=Job.State.FAILED, finished__gt=since)
    return list(rows.select_related("team").order_by("-finished")[:FAILED_SHOWN])


def described(job: Job) -> dict[str, Any]:
    """A failed job: its reason names no content."""
    return {
        "id": str(job.pk),
        "team": job.team.slug,
        "kind": job.kind,
        "title": (job.problem or {}).get("title", ""),
        "finished": job.finished,
    }
