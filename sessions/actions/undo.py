"""Undo: take a revision of a served run back, as a revision of its own."""

from __future__ import annotations

from sessions.models import Revision, Session


def undo_revision(session: Session, number: int) -> Revision:
    """Let stand again what revision `number` of the served run replaced. Raises CannotUndo."""
    raise NotImplementedError
