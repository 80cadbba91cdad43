"""Undo: take a revision of a served run back, as a revision of its own."""

from __future__ import annotations

from django.db import transaction

from compaction.edits import CannotUndo
from compaction.on_request import undo
from sessions.actions import audit, tend
from sessions.actions.advance import serving
from sessions.actions.folds import Fold, with_fold
from sessions.models import Revision, Session

__all__ = ["CannotUndo", "undo_revision"]


def undo_revision(session: Session, number: int, actor: audit.Actor = audit.COMMAND) -> Revision:
    """Let stand again what revision `number` of the served run replaced. Raises CannotUndo."""
    run = serving(session)
    if run is None:
        raise CannotUndo("The session has no policy, so none of its revisions is ours to undo.")

    def work(fold: Fold) -> int:
        made = undo(fold.state, number)
        with transaction.atomic():
            fold.store(session, [made])
            audit.note(session.team, actor, "revision.undone", session.external_id, number=number)
        return made.number

    made = with_fold(session, run, work)
    tend.ask(session)
    return Revision.objects.get(run=run, number=made)
