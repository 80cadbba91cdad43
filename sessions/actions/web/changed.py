"""Publish that a session changed."""

from __future__ import annotations

from django.db.models import F

from sessions.live import hint
from sessions.models import Session
from sessions.models.web.statements import Statement, Update, given_uuid


def publish(session: Session, *, raised: bool = False) -> None:
    """Increment the session's version, unless the change has `raised` it, and hint to open pages;
    call in the transaction of the change."""
    if not raised:
        _RAISE.run(session=session.pk)
    session.version, session.used_tokens, session.counted_tokens = _READ.first(session=session.pk)
    hint(f"session:{session.pk}", session.version)


_RAISE = Update(
    lambda: (Session.objects.filter(pk=given_uuid("session")), {"version": F("version") + 1})
)
_READ = Statement(
    lambda: Session.objects.filter(pk=given_uuid("session")).values_list(
        "version", "used_tokens", "counted_tokens"
    )
)
