"""Jobs: their kinds, limits and queues, and Celery's settings."""

from __future__ import annotations

import os
import sys
from typing import Any

from contextlab import environment as env

REDIS_URL = os.environ.get("REDIS_URL", "")
if REDIS_URL:
    env.needs("REDIS_URL", "redis", "celery", "channels_redis")

# Kind of job -> the function in sessions/actions that does it, in a process of its own.
JOB_KINDS: dict[str, str] = {
    "archive": "sessions.actions.erasure.archiving.archive_job",
    "assess": "sessions.actions.assessments.assess.assess",
    "compact": "sessions.actions.live.requests.on_request.compact",
    "demo": "sessions.actions.demo.demo.demo_job",
    "demo-removal": "sessions.actions.demo.demo.removal_job",
    "erase": "sessions.actions.erasure.erase.erase_job",
    "import": "sessions.actions.imports.uploads.run",
    "index": "sessions.actions.search.indexing.index",
    "masking": "sessions.actions.masking.dry_runs.dry_run",
    "notify": "sessions.actions.notifications.delivery.notify",
    "share": "sessions.actions.memory.shares.bring",
    "simulate": "sessions.actions.lab.simulate.simulate_job",
    "simulation": "sessions.actions.lab.simulations.simulation_job",
    "tend": "sessions.actions.live.tend.tend",
    "tuning": "sessions.actions.lab.tunings.tuning_job",
    "unpack": "sessions.actions.archives.unpack.unpack_job",
    "verify": "sessions.actions.record.verify.verify",
}
# Celery's queues: what live sessions wait for, and all else. A worker takes both by default.
JOB_QUEUES = ("live", "batch")
LIVE_JOBS = {"compact", "index", "notify", "share", "tend", "unpack"}
FORK_SERVER = [sys.executable, "-P", "-m", "contextlab.processes.job"]
JOB_PROCESS = "contextlab.processes.job.run"
JOB_SECONDS = env.number("JOB_SECONDS", 900)  # per attempt, then it is killed
# Job kinds queued by every live session: one that hangs must not block the others.
JOB_SECONDS_OF = {
    "erase": 4 * JOB_SECONDS,
    "notify": min(JOB_SECONDS, 60),
    "tend": min(JOB_SECONDS, 240),
    "tuning": 4 * JOB_SECONDS,
    "verify": 4 * JOB_SECONDS,
}
JOB_LEASE_SECONDS = env.number("JOB_LEASE_SECONDS", 20)
JOB_RETRY_SECONDS = env.number("JOB_RETRY_SECONDS", 5)  # multiplied by the number of attempts
JOB_ATTEMPTS = 3
JOB_LOSSES = 100  # attempts that ended with their server or worker, after which a job fails
TEND_SECONDS = env.number("TEND_SECONDS", 1)  # between an append and the job that it asks for
JOB_THREADS = int(env.number("JOB_THREADS", 2))
SWEEP_SECONDS = env.number("SWEEP_SECONDS", 5)

CELERY_BROKER_URL = REDIS_URL  # without Redis, the server itself supervises job processes
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    "visibility_timeout": 2 * JOB_SECONDS,
    "socket_connect_timeout": 2,
    "socket_timeout": 10,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 20
CELERY_WORKER_POOL = "threads"  # a task only supervises its own process
CELERY_WORKER_CONCURRENCY = JOB_THREADS
CELERY_TASK_DEFAULT_QUEUE = "batch"
