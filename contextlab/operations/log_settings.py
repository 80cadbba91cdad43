"""What is logged, and in what form: ids, sizes and classes of errors, never content."""

from __future__ import annotations

from typing import Any

from contextlab import environment as env

QUOTING = ("httpx2", "httpcore2", "anthropic", "boto3", "botocore", "s3transfer", "urllib3")
"""Libraries that write addresses with their query, in which some providers take keys, or, from
DEBUG on, headers and bodies of requests."""


def logging() -> dict[str, Any]:
    """Django's LOGGING. Raises ValueError for a form that there is not."""
    form = env.text("LOG_FORMAT", "line")
    if form not in ("line", "json"):
        raise ValueError(f"CONTEXTLAB_LOG_FORMAT is line or json, not {form!r}")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": "contextlab.operations.logs.OneLine"},
            "json": {"()": "contextlab.operations.logs.JsonLine"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form},
            "counted": {"class": "contextlab.operations.logs.LineCounter", "level": "WARNING"},
        },
        "root": {"handlers": ["stderr", "counted"], "level": env.text("LOG_LEVEL", "WARNING")},
        "loggers": {
            "contextlab.access": {"level": "INFO"},
            "django": {"handlers": [], "level": "WARNING", "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # Celery writes a failed task's exception text.
            "celery.app.trace": {"level": "CRITICAL"},
            **dict.fromkeys(QUOTING, {"level": "WARNING"}),
        },
    }
