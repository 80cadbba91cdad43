"""Once: what a request with an Idempotency-Key did is done once, and answered the same again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from sessions.models import Answer, Team

KEPT = timedelta(hours=24)
"""A request that is sent again after that counts as a new one."""


class AnotherRequest(ValueError):
    """The key was used before, for another request."""


@dataclass(frozen=True, slots=True)
class Once:
    """An Idempotency-Key and what it was sent with.

    `request` is the SHA-256 (64 hex digits) of method, path and body. `key` has at most 255
    characters; the door checks that.
    """

    key: str
    request: str

    def answered(self, team: Team) -> Answer | None:
        """What this request was answered before. Raises AnotherRequest."""
        found = Answer.objects.filter(team=team, key=self.key).first()
        if found is not None and found.request != self.request:
            raise AnotherRequest(
                "This Idempotency-Key was used for another request; take a new one."
            )
        return found

    def keep(self, team: Team, status: int, answer: Any) -> Answer:
        """Store the answer (JSON), in the transaction of what the request did.

        Raises IntegrityError where another request of the same key was faster: roll back, and ask
        `answered` again.
        """
        body = json.dumps(answer, separators=(",", ":")).encode()
        return Answer.objects.create(
            team=team, key=self.key, request=self.request, status=status, body=body
        )


def forget_answers() -> int:
    """Delete answers older than KEPT; returns how many there were."""
    return Answer.objects.filter(created__lt=timezone.now() - KEPT).delete()[0]


def answer_of(stored: Answer) -> Any:
    """The JSON that was answered."""
    return json.loads(bytes(stored.body))
