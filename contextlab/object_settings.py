"""Object storage (S3) that the settings, or a command, name."""

from __future__ import annotations

from typing import Any

from contextlab import environment as env

_CONNECT_SECONDS, _READ_SECONDS, _TRIES = 2, 20, 2
_MEMORY = 8 * 1024 * 1024
"""Bytes of a file that is read or written which are kept in memory; the rest is on disk."""


def s3(url: str) -> dict[str, Any]:
    """Django's settings for a storage at s3://bucket/prefix; the endpoint and the credentials are
    those of AWS's own variables. Raises ValueError."""
    scheme, _, place = url.partition("://")
    bucket, _, prefix = place.partition("/")
    if scheme != "s3" or not bucket:
        raise ValueError(f"Object storage is named s3://bucket/prefix, not {url!r}")
    env.needs(url, "s3", "boto3", "storages")
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": _TRIES, "mode": "standard"},
        # Content has its SHA-256 beside it, and not every server knows the newer sums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": bucket,
            "location": prefix.strip("/"),
            "client_config": config,
            # Threads are ours (sessions/models/record/objects.py).
            "transfer_config": TransferConfig(use_threads=False),
            "file_overwrite": True,
            "default_acl": None,
            "querystring_auth": False,
            "max_memory_size": _MEMORY,
        },
    }


def storages(url: str) -> dict[str, Any]:
    """Django's storages, with `objects` if CONTEXTLAB_BLOBS names one. Raises ValueError."""
    files = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    return {"staticfiles": files, **({"objects": s3(url)} if url else {})}
