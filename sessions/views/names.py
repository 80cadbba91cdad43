"""How sessions and runs are called on pages and in addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from sessions.models import Block, Run, Session


def session_name(session: Session) -> str:
    """Its title, or else the first words that were said in it, or else its id."""
    if session.title:
        return session.title
    if hasattr(session, "opening"):
        return session.opening or session.external_id
    found = (said.first() for said in _openings(session))
    return next((words for words in found if words), session.external_id)


def with_opening(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """The sessions with their `opening` words, so that naming them asks nothing more."""
    first = (Subquery(said) for said in _openings(OuterRef("pk")))
    return sessions.annotate(opening=Coalesce(*first))


def _openings(session: Any) -> Iterator[QuerySet[Block, str]]:
    """What a person said first, and what was said to the model first, one row each."""
    said = Block.objects.filter(session=session, type="text").order_by("position")
    for whose in (Q(message__human=True), Q(kind="user")):
        yield said.filter(whose).values_list("preview", flat=True)[:1]


def run_name(run: Run) -> str:
    """A run in an address: "recorded", or its id."""
    return "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk)
