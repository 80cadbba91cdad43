"""Deliver: what a live agent sends enters the store, and is answered with where it now stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessions.actions.once import AnotherRequest, Once
from sessions.importers.delivered import Delivery, Unacceptable, delivery
from sessions.models import ModelCall, Session

__all__ = [
    "AnotherRequest",
    "Delivered",
    "Delivery",
    "Once",
    "Unacceptable",
    "deliver",
    "delivery",
    "report_call",
]


@dataclass(frozen=True, slots=True)
class Delivered:
    """What an append is answered: the JSON of the API, and whether it is the answer of a retry."""

    answer: dict[str, Any]
    again: bool = False


def deliver(
    session: Session, batch: Delivery, *, once: Once | None = None, now: int | None = None
) -> Delivered:
    """Append a batch in one transaction: rows, the answer to a retry, and the job that tends.

    All of it or nothing is stored; when this returns, it is committed. `now` (ms since the epoch;
    default: the clock) is the time of messages that state none. Raises Unacceptable, and
    AnotherRequest for a key that was used before.
    """
    raise NotImplementedError


def report_call(session: Session, body: Any) -> ModelCall:
    """Attach what a provider reported to a model call: {call?, step?, model?, usage, context_id?,
    started_at?, stop_reason?}.

    Idempotent, and late is fine. The call is found by its id, its step, or the context that it
    was sent with; without any of these it is the newest. Raises Unacceptable.
    """
    raise NotImplementedError
