"""Publish that a session changed."""

from __future__ import annotations

from django.db.models import F

from sessions.live import hint
from sessions.models import Session


def publish(session: Session) -> None:
    """Increment the session's version and hint to open pages; call in the transaction of the
    change."""
    Session.objects.filter(pk=session.pk).update(version=F("version") + 1)
    session.refresh_from_db(fields=["version", "used_tokens", "counted_tokens"])
    hint(f"session:{session.pk}", session.version)
