"""Notes that people leave on steps of a session."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Path, Router, Schema
from pydantic import Field, StrictInt, StringConstraints

from sessions.access import actor_of, allowed, require, session_of
from sessions.actions.replay import step_notes as actions
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import BIGGEST, BodyIn
from sessions.models import Session, StepNote
from sessions.models.record.step_notes import LONGEST

router = Router(tags=["Replay"])


class NoteOnStepIn(BodyIn):
    """A note to leave on a step."""

    step: Annotated[StrictInt, Field(ge=1, le=BIGGEST)]
    text: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST, strip_whitespace=True)]


class NoteOnStep(Schema):
    """A note on a step; `deletable` if the requester is its author, or an admin of the team."""

    id: int
    step: int
    text: str
    author: str
    created: datetime
    deletable: bool


class NotesOnSteps(Schema):
    """All notes of a session, by step."""

    notes: list[NoteOnStep]


@router.get("sessions/{path:session_id}/step-notes", response=NotesOnSteps, url_name="step_notes")
def step_notes(request: HttpRequest, session_id: str) -> HttpResponse:
    """List notes that people left on steps, at most 500."""
    return _answer_notes(request, session_of(request, session_id))


@router.post(
    "sessions/{path:session_id}/step-notes",
    response={201: NotesOnSteps},
    url_name="step_notes",
)
@done_once
def add(request: HttpRequest, session_id: str, wanted: NoteOnStepIn) -> HttpResponse:
    """Leave a note on a step. The team sees it with the author's name."""
    session = session_of(request, session_id, "read")
    if not allowed(request, session.team, "review"):
        require(request, session.team, "write")
    try:
        actions.add_note(session, wanted.step, wanted.text, actor_of(request))
    except actions.CannotLeaveNote as error:
        raise Refusal(422, "Cannot leave a note", str(error), field="/step") from None
    return _answer_notes(request, session, 201)


@router.delete(
    "sessions/{path:session_id}/step-notes/{step_note_id}",
    response=NotesOnSteps,
    url_name="step_note",
)
@done_once
def delete(
    request: HttpRequest, session_id: str, step_note_id: int = Path(..., ge=1, le=BIGGEST)
) -> HttpResponse:
    """Delete a note: its author can, and an admin or owner of the team."""
    session = session_of(request, session_id, "read")
    note = session.step_notes.filter(pk=step_note_id).first()
    if note is None:
        raise Http404("no such note")
    if not _is_author(request, note):
        require(request, session.team, "members")
    actions.delete_note(note, actor_of(request))
    return _answer_notes(request, session)


def _is_author(request: HttpRequest, note: StepNote) -> bool:
    user = actor_of(request).user
    return user is not None and user.pk == note.author_id


def _answer_notes(request: HttpRequest, session: Session, status: int = 200) -> HttpResponse:
    manages = allowed(request, session.team, "members")
    notes = [
        {
            "id": note.pk,
            "step": note.step,
            "text": note.text,
            "author": note.author_name,
            "created": note.created.isoformat(),
            "deletable": manages or _is_author(request, note),
        }
        for note in session.step_notes.order_by("step", "pk")
    ]
    return json_answer({"notes": notes}, status)
