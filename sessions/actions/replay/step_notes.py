"""Notes on steps: leave one, and delete it."""

from __future__ import annotations

from django.db import transaction

from sessions.actions.accounts import audit
from sessions.models import Session, StepNote
from sessions.models.erasure.kept import while_kept

MOST_NOTES = 500
"""Notes that a session can have."""


class CannotLeaveNote(Exception):
    """The session has no such step, or MOST_NOTES already; the message says which."""


def add_note(session: Session, step: int, text: str, actor: audit.Actor) -> StepNote:
    """Leave a note on a step. Raises CannotLeaveNote, SessionErased."""
    if step > session.step_count + 1:
        raise CannotLeaveNote(f"The session has {session.step_count} steps.")
    if session.step_notes.count() >= MOST_NOTES:
        raise CannotLeaveNote(f"The session has {MOST_NOTES} notes. Delete one first.")
    with while_kept(session.pk):
        note = StepNote.objects.create(
            session=session, step=step, text=text, author=actor.user, author_name=actor.name[:150]
        )
        audit.note(session.team, actor, "note.added", str(session.pk), step=step, note=note.pk)
    return note


@transaction.atomic
def delete_note(note: StepNote, actor: audit.Actor) -> None:
    """Delete a note."""
    session = note.session
    audit.note(session.team, actor, "note.deleted", str(session.pk), step=note.step, note=note.pk)
    note.delete()
