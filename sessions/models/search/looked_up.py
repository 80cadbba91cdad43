"""Which blocks hold the words of a search, by the index alone: their keys and sessions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.record.messages import Block
from sessions.models.record.revisions import Replacement
from sessions.models.record.sessions import Session
from sessions.models.search import text_index
from sessions.models.search.search_words import SearchQuery, label

FEW = 200
"""Sessions up to which blocks are looked up by session: a filter that few pass costs no walk
through the blocks of all others."""

COUNTED = 2_000
"""Blocks with the words are counted up to here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for: a query, and properties of blocks. Empty ones do not narrow."""

    query: SearchQuery
    tool: str = ""
    kind: str = ""
    error: bool = False

    @property
    def labels(self) -> list[str]:
        """The labels that a block must have."""
        found = [label("tool", self.tool.lower())] if self.tool else []
        found += [label("kind", self.kind)] if self.kind else []
        return found + ([label("error", 1)] if self.error else [])

    @property
    def required(self) -> list[str]:
        """The words and labels that a block must have. Empty, so that nothing is found, without a
        word, unless failed tool calls are asked for: these are few."""
        return [*self.query.words, *self.labels] if self.query.words or self.error else []


def owners_of(teams: Collection[Team], sessions: QuerySet[Session]) -> list[str]:
    """Labels, one of them required: of the sessions if there are few, else of the teams."""
    few = list(sessions.order_by().values_list("pk", flat=True)[: FEW + 1])
    if len(few) <= FEW:
        return [label("session", pk) for pk in few]
    return [label("team", team.pk) for team in teams]


def sessions_of(
    keys: list[int], sessions: QuerySet[Session]
) -> tuple[dict[UUID, UUID], dict[int, UUID]]:
    """The teams of those of these sessions that hold the keys, and the session of each key."""
    of = dict(Block.objects.filter(pk__in=keys).values_list("pk", "session_id"))
    replaced = Replacement.objects.filter(pk__in=replacements(keys))
    of |= {
        text_index.REPLACEMENTS + pk: session
        for pk, session in replaced.values_list("pk", "run__session_id")
    }
    return dict(sessions.filter(pk__in=set(of.values())).values_list("pk", "team_id")), of


def replacements(keys: list[int]) -> list[int]:
    """The primary keys of the replacements among keys of the index."""
    return [key - text_index.REPLACEMENTS for key in keys if key < 0]
