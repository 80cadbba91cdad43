"""Pins: messages that stay verbatim in every managed context."""

from __future__ import annotations

from sessions.models import Pin, Session


class CannotPin(ValueError):
    """Why a message cannot be pinned, as a sentence."""


def pin(session: Session, seq: int) -> Pin:
    """Pin a message; what had left the served context stands again. Raises CannotPin."""
    raise NotImplementedError


def unpin(session: Session, seq: int) -> bool:
    """Let a policy have a message again; False when it was not pinned."""
    raise NotImplementedError
