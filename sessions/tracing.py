"""OpenTelemetry spans of our own requests and jobs; off unless CONTEXTLAB_TRACES is set.

Where they go is set by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT and others).
They hold routes, kinds of jobs and ids of requests, never content.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_tracer: Any = None


class _NoSpan:
    def update_name(self, name: str) -> None:
        """Nothing."""

    def set_attribute(self, name: str, value: Any) -> None:
        """Nothing."""


_NONE = _NoSpan()


def start(service: str) -> None:
    """Export spans of this process from now on; needs the extra `traces`."""
    global _tracer
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("contextlab")


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Any]:
    """A span around some work; without a tracer one that does nothing."""
    if _tracer is None:
        yield _NONE
        return
    with _tracer.start_as_current_span(name, attributes=attributes) as started:
        yield started
