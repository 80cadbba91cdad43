"""Undo: revert a revision of a managed run by another revision."""

from __future__ import annotations

from django.db import transaction

from compaction.context.edits import CannotUndo
from compaction.fold.on_request import undo
from sessions.actions.accounts import audit
from sessions.actions.live import tend
from sessions.actions.live.advance import store
from sessions.actions.live.folds import Fold, serving, with_fold
from sessions.models import Revision, Session

__all__ = ["CannotUndo", "undo_revision"]


def undo_revision(session: Session, number: int, actor: audit.Actor = audit.COMMAND) -> Revision:
    """Restore what revision `number` of the managed run replaced. Raises CannotUndo."""
    run = serving(session)
    if run is None:
        raise CannotUndo("The session has no policy, so it has no managed revision to undo.")

    def work(fold: Fold) -> int:
        made = undo(fold.state, number)
        with transaction.atomic():
            store(fold, session, [made])
            audit.note(session.team, actor, "revision.undone", session.external_id, number=number)
        return made.number

    made = with_fold(session, run, work)
    tend.ask(session)
    return Revision.objects.get(run=run, number=made)
