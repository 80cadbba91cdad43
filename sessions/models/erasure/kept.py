"""Sessions whose content is kept: only to these is anything written that quotes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction
from django.http import Http404

from sessions.models.record.sessions import Session
from sessions.models.web.statements import Statement, given_uuid


class SessionErased(Http404):
    """The session was erased, or is being erased; `str()` says so to its agent."""

    def __init__(self, *, done: bool) -> None:
        super().__init__(
            f"This session {'was' if done else 'is being'} erased, and nothing more is stored for "
            "it. Start a session with another id."
        )


@contextmanager
def while_kept(session: UUID) -> Iterator[None]:
    """A transaction that may write what quotes a session's content: its row is locked, so an
    erasure begins before, and is seen here, or after, and clears it. Raises SessionErased."""
    with transaction.atomic():
        row = _LOCKED.first(session=session)
        if row is None or any(row):
            raise SessionErased(done=row is None or row[0] is None)
        yield


_LOCKED = Statement(
    lambda: (
        Session.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=given_uuid("session"))
        .values_list("erasing", "content_erased")
    )
)
