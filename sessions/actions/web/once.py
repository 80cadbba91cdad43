"""Idempotency: a request with an Idempotency-Key takes effect once and gets the same response
again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from sessions.models import Answer, Team
from sessions.models.web.statements import Statement, given_text, given_uuid, insert, stored_uuid

KEPT = timedelta(hours=24)
"""How long responses are kept; a later repetition counts as a new request."""


class AnotherRequest(ValueError):
    """The key was already used for a different request."""


@dataclass(frozen=True, slots=True)
class Once:
    """An Idempotency-Key and the request it was sent with.

    `request` is the SHA-256 (64 hex digits) of method, path and body. `key` has at most 255
    characters, as checked by the API.
    """

    key: str
    request: str

    def answered(self, team: Team) -> Answer | None:
        """The stored response to this request, if any. Raises AnotherRequest."""
        found: Answer | None = _ANSWERED.first(team=team.pk, key=self.key)
        if found is not None and found.request != self.request:
            raise AnotherRequest(
                "This Idempotency-Key was used for a different request. Send a new key."
            )
        return found

    def keep(self, team: Team, status: int, answer: Any, session: UUID | None = None) -> bytes:
        """Store the response (JSON), in the transaction of the request's changes; return its body.
        With the session that it is about, it is erased with that.

        Raises IntegrityError if a concurrent request with the same key was faster: roll back, and
        call `answered` again.
        """
        body = json.dumps(answer, separators=(",", ":")).encode()
        about = None if session is None else stored_uuid(session)
        row = (stored_uuid(team.pk), self.key, self.request, about, status, body, timezone.now())
        columns = ("team_id", "key", "request", "session", "status", "body", "created")
        insert(Answer, columns, [row])
        return body


_ANSWERED = Statement(lambda: Answer.objects.filter(team=given_uuid("team"), key=given_text("key")))


def forget_answers() -> int:
    """Delete responses older than KEPT; return how many."""
    return Answer.objects.filter(created__lt=timezone.now() - KEPT).delete()[0]


def answer_of(stored: Answer) -> Any:
    """The JSON of a stored response."""
    return json.loads(bytes(stored.body))
