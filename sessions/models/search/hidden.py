"""What a search may tell where content is shown masked."""

from __future__ import annotations

from sessions.models.search.presence import State
from sessions.models.search.search_words import SearchQuery
from sessions.models.web.shown import value, view

DEADLINE = 0.12
"""Seconds after which a page ends with what it has; the next one continues (our choice)."""

ENDING_DEADLINE = 1.0
"""Seconds where hits in one state are wanted, which few may be (our choice)."""

MASKED_DEADLINE = 5.0
"""Seconds where content is shown masked: an early end would tell that masked blocks match."""


def deadline(state: State | None) -> float:
    """Seconds for a page: of the hits in this state, or of all."""
    if view() is not None:
        return MASKED_DEADLINE
    return DEADLINE if state is None else ENDING_DEADLINE


def is_hidden(query: SearchQuery) -> bool:
    """Whether the reader asks for what is masked: no search tells whether it is there."""
    return any(value(piece.text) != piece.text for piece in query.pieces)
