"""What operators watch: figures for Prometheus, spans for OpenTelemetry; started once a process."""

from __future__ import annotations

from django.conf import settings
from django.core.management import CommandError
from prometheus_client import REGISTRY, Info, start_http_server

from contextlab.door.metrics import Queue
from contextlab.version import version
from sessions import tracing


def start(service: str) -> None:
    """Show queue and version among this process's figures, and send its spans if wanted."""
    REGISTRY.register(Queue())
    Info("contextlab_build", "What runs here").info({"version": version()})
    if settings.TRACES:
        tracing.start(service)


def listen(address: str) -> None:
    """Answer `/metrics` at host:port, for a process that answers nothing else.

    Raises CommandError.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise CommandError(
            f"CONTEXTLAB_WORKER_METRICS is host:port, not {address!r}.", returncode=2
        )
    try:
        start_http_server(int(port), addr=host or "127.0.0.1")
    except OSError as error:
        raise CommandError(f"CONTEXTLAB_WORKER_METRICS {address}: {error.strerror}.") from None
