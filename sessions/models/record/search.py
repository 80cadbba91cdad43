"""Search in the texts of all blocks of a team's sessions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from compaction.context import wire
from sessions.models.accounts.teams import Team
from sessions.models.record import text_index
from sessions.models.record.messages import Block
from sessions.models.record.presence import IN_CONTEXT, BlockState, presences, shown_runs
from sessions.models.record.revisions import Run
from sessions.models.record.search_words import SearchQuery, label, searched_text
from sessions.models.record.sessions import Session
from sessions.models.record.values import readable
from sessions.models.web.periods import LAST, happened_in

HITS = 50
"""Hits per page."""

STRIDES = (200, 2_000)
"""Blocks that are looked at together: at first, and at most."""

DEADLINE = 0.15
"""Seconds after which a page ends with what it has; the next one continues (our choice)."""

AT_ONCE = 50
"""Blocks whose texts are read together."""

BEFORE, AFTER = 80, 220
"""Length of an excerpt around the match, in code points."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for: a query, and properties of blocks. Empty ones do not narrow."""

    query: SearchQuery
    tool: str = ""
    kind: str = ""
    error: bool = False
    session: UUID | None = None

    @property
    def labels(self) -> list[str]:
        """The labels that a block must have."""
        found = [label("session", self.session)] if self.session else []
        found += [label("tool", self.tool.lower())] if self.tool else []
        found += [label("kind", self.kind)] if self.kind else []
        return found + ([label("error", 1)] if self.error else [])


class _Matching(NamedTuple):
    session: Session
    block: Block
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A block that matches: its session, the run that its replay opens with, an excerpt in parts
    (whether it matches, and its text), and where the block is at the end of that run."""

    session: Session
    run: Run | None
    block: Block
    excerpt: list[tuple[bool, str]]
    presence: BlockState


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits, newest block first.

    `more` are sessions with further hits than a page shows of one. `after` continues below this
    block; None at the end. `stopped`: the deadline ended it.
    """

    hits: list[Hit]
    more: frozenset[UUID]
    after: int | None
    stopped: bool


NOTHING = SearchPage([], frozenset(), None, False)


def search(
    teams: Collection[Team],
    wanted: Wanted,
    sessions: QuerySet[Session],
    *,
    after: int | None = None,
    each: int = HITS,
    limit: int = HITS,
) -> SearchPage:
    """Search blocks of `sessions`, which belong to these teams; at most `each` hits per session.

    A query without a word finds nothing. The time is bounded by DEADLINE between strides.
    """
    if not wanted.query.words or not teams:
        return NOTHING
    until = time.monotonic() + DEADLINE
    found: list[_Matching] = []
    shown: Counter[UUID] = Counter()
    more: set[UUID] = set()

    def page(after: int | None, *, stopped: bool = False) -> SearchPage:
        return SearchPage(_hits(wanted, found), frozenset(more), after, stopped)

    for keys in _strides(teams, wanted, after):
        for part, known in _of_sessions(keys, sessions):
            for match in _matching(part, known, wanted.query):
                pk = match.session.pk
                if shown[pk] == each:
                    more.add(pk)
                    continue
                shown[pk] += 1
                found.append(match)
                if len(found) == limit:
                    return page(match.block.pk)
            if time.monotonic() > until:
                return page(part[-1], stopped=True)
        if time.monotonic() > until:
            return page(keys[-1], stopped=True)
    return page(None)


def _strides(teams: Collection[Team], wanted: Wanted, after: int | None) -> Iterator[list[int]]:
    """Keys of blocks with the words, newest first, in growing lists."""
    size, most = STRIDES
    words = [*wanted.query.words, *wanted.labels]
    owners = [label("team", team.pk) for team in teams]
    while True:
        keys = text_index.holding(words, owners, below=after, limit=size)
        if keys:
            yield keys
        if len(keys) < size:
            return
        after, size = keys[-1], min(2 * size, most)


def _of_sessions(
    keys: list[int], sessions: QuerySet[Session]
) -> Iterator[tuple[list[int], dict[UUID, Session]]]:
    """The keys of blocks of these sessions, in parts, with the sessions.

    The index may hold blocks that another transaction is deleting.
    """
    of = dict(Block.objects.filter(pk__in=keys).values_list("pk", "session_id"))
    rows = sessions.filter(pk__in=set(of.values())).defer("sparkline", "meta")
    known = {row.pk: row for row in rows}
    left = [key for key in keys if of.get(key) in known]
    for start in range(0, len(left), AT_ONCE):
        yield left[start : start + AT_ONCE], known


def _matching(
    keys: list[int], sessions: dict[UUID, Session], query: SearchQuery
) -> Iterator[_Matching]:
    """Blocks whose texts match, in the order of `keys`."""
    blocks = Block.objects.select_related("message").in_bulk(keys)
    texts = _texts(list(blocks.values()), sessions)
    for key in keys:
        if key in blocks and query.matches(text := texts.get(blocks[key].sha, "")):
            yield _Matching(sessions[blocks[key].session_id], blocks[key], text)


def _texts(blocks: list[Block], sessions: dict[UUID, Session]) -> dict[str, str]:
    by_team: dict[UUID, list[str]] = {}
    for block in blocks:
        by_team.setdefault(sessions[block.session_id].team_id, []).append(block.sha)
    return {
        sha: searched_text(wire.decode(data))
        for team, shas in by_team.items()
        for sha, data in readable(team, shas).items()
    }


def _hits(wanted: Wanted, found: list[_Matching]) -> list[Hit]:
    sessions = {session.pk: session for session, _, _ in found}
    runs = shown_runs(list(sessions.values()))
    where: dict[int, BlockState] = {}
    for team in {session.team_id for session in sessions.values()}:
        blocks = [block for session, block, _ in found if session.team_id == team]
        where |= presences(team, blocks, runs, wanted.query.holds)
    return [
        Hit(
            session,
            runs.get(session.pk),
            block,
            wanted.query.excerpt(text, before=BEFORE, after=AFTER),
            where.get(block.pk, IN_CONTEXT),
        )
        for session, block, text in found
    ]


def sessions_with(
    teams: Collection[Team],
    *,
    agent: str = "",
    model: str = "",
    since: int | None = None,
    until: int | None = None,
    cost: int | None = None,
) -> QuerySet[Session]:
    """Sessions of these teams with these properties; empty ones do not narrow.

    They happened in [since, until), in ms, and cost at least `cost` micro-dollars.
    """
    rows = Session.objects.filter(team__in=teams)
    if agent:
        rows = rows.filter(agent=agent)
    if model:
        rows = rows.filter(model=model)
    if cost is not None:
        rows = rows.filter(cost_microusd__gte=cost)
    if since is not None or until is not None:
        rows = rows.filter(happened_in([(since or 0, LAST if until is None else until)]))
    return rows
