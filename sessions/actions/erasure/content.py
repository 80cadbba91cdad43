"""Erase the content of a session, and keep its figures."""

from __future__ import annotations

from typing import Any

from django.db import models, transaction
from django.db.models import F
from django.utils import timezone

from sessions.actions.erasure import rows
from sessions.actions.erasure.remnants import Heard
from sessions.actions.memory import boards
from sessions.actions.record.append import touch
from sessions.models import (
    Artefact,
    Assessment,
    Block,
    Board,
    Edit,
    FactLedger,
    Gathering,
    ManagedContext,
    Message,
    Note,
    Opening,
    Replacement,
    Review,
    Revision,
    Run,
    SentRecitation,
    Session,
    Share,
    SimulationResult,
    StepNote,
)

DELETED = (SentRecitation, Artefact, Gathering, Opening, Note, Share, Board, StepNote)
"""Tables that hold nothing but content, in the order of `rows.TABLES`."""

COUNTED = (Message, Block, Replacement)

CLEARED: dict[type[models.Model], dict[str, Any]] = {
    Block: {"preview": ""},
    Message: {"extra": None},
    Replacement: {"preview": ""},
    Edit: {"reason": ""},
    Revision: {"reason": "", "parameters": {}},
    FactLedger: {"facts": [], "after": {}, "sections": [], "quality": []},
    Review: {"note": "", "marks": {}},
    ManagedContext: {"knowledge": ""},
    SimulationResult: {"worst": []},
    Assessment: {"dropped": {}, "missing": None},
    Run: {
        "fold": {},
        "entries_packed": b"",
        "entries_key": "",
        "tail": None,
        "bases": None,
        "generation": F("generation") + 1,
    },
}
"""Columns that quote content, and what they become. The generation of a run rises, so that a
measurement that read it before does not write."""

PLACES = ("cwd", "branch")
"""Metadata that importers take from logs and that quotes names of people, customers and tasks.
What a program itself gave stays: it names whose data a session is."""

_WAYS = dict(rows.TABLES)


def counted(session: Session) -> dict[str, int]:
    """Rows of a session that lose their content."""
    found = {rows.name_of(Session): 1}
    for model in COUNTED:
        found[rows.name_of(model)] = rows.rows_of(model, _WAYS[model], session.pk).count()
    return found


def erase(session: Session, heard: Heard) -> None:
    """Clear what quotes content, in short transactions. The index must have forgotten it. Safe to
    repeat."""
    with transaction.atomic():
        # First: its opening says which project it was in.
        boards.forget(session.team, Session.objects.filter(pk=session.pk))
        for texts in rows.requests_of(session):
            texts.delete()
    for model, ways in rows.TABLES:
        if model not in DELETED:
            continue
        while rows.delete_some(rows.rows_of(model, ways, session.pk)):
            heard()
    for model, empty in CLEARED.items():
        _clear(model, empty, session, heard)
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        locked.title, locked.erasing, locked.content_erased = "", None, timezone.now()
        locked.meta = {name: said for name, said in locked.meta.items() if name not in PLACES}
        touch(locked)


def _clear(
    model: type[models.Model], empty: dict[str, Any], session: Session, heard: Heard
) -> None:
    keys = list(rows.rows_of(model, _WAYS[model], session.pk).order_by("pk").values_list(
        "pk", flat=True
    ))  # fmt: skip
    for start in range(0, len(keys), rows.AT_ONCE):
        some = model._default_manager.filter(pk__in=keys[start : start + rows.AT_ONCE])
        some.update(**empty)
        heard()
