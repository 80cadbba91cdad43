"""Saved searches: keep one under a name, and remove it."""

from __future__ import annotations

from django.db import transaction

from sessions.actions.accounts import audit
from sessions.models import SavedSearch, Team

NAME_CHARS = 80
MOST_SAVED = 100
"""Searches that a team can keep."""


class TooManySaved(Exception):
    """The team keeps MOST_SAVED searches."""


@transaction.atomic
def save_search(team: Team, actor: audit.Actor, name: str, query: str) -> SavedSearch:
    """Keep a search, or replace the one with this name. Raises TooManySaved."""
    others = SavedSearch.objects.filter(team=team).exclude(name=name)
    if others.count() >= MOST_SAVED:
        raise TooManySaved
    saved, _ = SavedSearch.objects.update_or_create(team=team, name=name, defaults={"query": query})
    audit.note(team, actor, "search.saved", str(saved.pk))
    return saved


@transaction.atomic
def remove_search(saved: SavedSearch, actor: audit.Actor) -> None:
    """Delete a saved search."""
    audit.note(saved.team, actor, "search.removed", str(saved.pk))
    saved.delete()
