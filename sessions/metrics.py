"""What this process counts for `/metrics`: numbers, kinds and routes, never ids or content."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600)

REQUESTS = Counter(
    "contextlab_requests", "Answered requests", ("method", "route", "status")
)  # Prometheus appends _total
REQUEST_SECONDS = Histogram(
    "contextlab_request_seconds",
    "Seconds from a whole request to the end of its answer",
    ("route",),
    buckets=_SECONDS,
)
REQUESTS_RUNNING = Gauge("contextlab_requests_running", "Requests that run now")
REQUESTS_WAITING = Gauge("contextlab_requests_waiting", "Requests that wait for their turn")
CONNECTIONS = Gauge("contextlab_connections", "Open connections, sockets included")
SOCKETS = Gauge("contextlab_sockets", "Open WebSockets")

MESSAGES = Counter("contextlab_messages", "Messages received and stored", ("kind",))
MESSAGE_BYTES = Counter("contextlab_message_bytes", "Bytes of requests with messages", ("kind",))

FOLD_SECONDS = Histogram(
    "contextlab_fold_seconds",
    "Seconds to advance a managed context, waiting included",
    buckets=_SECONDS,
)
FOLDS = Counter("contextlab_folds", "Managed contexts by where their state was", ("state",))

JOBS = Counter("contextlab_jobs_ended", "Attempts at jobs, by result", ("kind", "result"))
JOB_SECONDS = Histogram(
    "contextlab_job_seconds", "Seconds of an attempt at a job", ("kind",), buckets=_SECONDS
)

LOG_LINES = Counter("contextlab_log_lines", "Lines logged as warning or worse", ("level",))
