"""Checks before a server listens: unsafe settings, and files that other users can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError
from django.db import connection

from contextlab import environment as env
from contextlab.operations import exposure, permissions


def check_start(host: str, port: int) -> list[str]:
    """Check a server that is about to listen there; return warnings.

    Raises CommandError if others could reach a server with unsafe settings.
    """
    settings.HOST, settings.PORT = host, port
    settings.PUBLIC = exposure.how_public(
        host,
        env.words("ALLOWED_HOSTS"),
        settings.CSRF_TRUSTED_ORIGINS,
        behind_proxy=settings.SECURE_PROXY_SSL_HEADER is not None,
    )
    warnings = unsafe()
    if settings.PUBLIC and warnings:
        raise CommandError(
            f"Others can reach this server ({settings.PUBLIC}), so it does not start: "
            f"{'; '.join(warnings)}."
        )
    warnings += permissions.tighten(loose_files())
    folder = permissions.open_folder(settings.DATA_DIR)
    return [*warnings, folder] if folder else warnings


def unsafe() -> list[str]:
    """What to do about each setting that is unsafe on a server that others can reach."""
    return exposure.unsafe_settings(
        debug=settings.DEBUG, secret_key=settings.SECRET_KEY, folder=settings.DATA_DIR
    )


def loose_files() -> Iterator[Path]:
    """Our files that other users may read or write."""
    name = connection.settings_dict["NAME"] if connection.vendor == "sqlite" else None
    return permissions.loose_files(settings.DATA_DIR, Path(name) if name else None)
