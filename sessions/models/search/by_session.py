"""Hits by session, the newest session first: what the search page shows.

As long as the index finds few enough blocks to sort them all by their sessions; of more, `search`
shows the newest blocks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.record.sessions import Session
from sessions.models.search import looked_up, text_index
from sessions.models.search.hidden import deadline, is_hidden
from sessions.models.search.looked_up import Wanted, owners_of, sessions_of
from sessions.models.search.presence import State
from sessions.models.search.search import (
    HITS,
    Hit,
    hits_of,
    matching,
    search,
)
from sessions.models.web.shown import view

COUNTING = 0.5
"""Seconds after a page in which the hits of other pages that end as asked are counted (ours)."""

PROGRESS = 100_000
"""Blocks that the index finds are counted up to here to say how many were searched (ours)."""

AT_ONCE = 150
"""Blocks whose texts are read together, of a session or of several (our choice)."""


@dataclass(frozen=True, slots=True)
class SessionHits:
    """The hits of a session: those shown, newest first, those that hold the words together before
    others and, of failed tool calls, those with an error line before all, whether there are
    `more`, and how many of all end in each state; None if not all were read. `found` counts those
    that end as asked, of the blocks that were read."""

    session: Session
    shown: list[Hit]
    more: bool
    states: Mapping[State, int] | None = None
    found: int = 0


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Sessions with hits, newest first and those of the demo last; by their newest block if the
    index finds too many.

    `blocks` and `sessions` count what the index finds, the most that can match; None for too many.
    `after` is where the next page begins; None at the end. `stopped`: the deadline ended the page.
    `ending` counts the hits that end as asked and their sessions, of all pages: exactly if
    `all_read`. `searched`: on this page and those before, and of how many, sessions or, if
    `sessions` is None, blocks; None if unknown, and where content is masked.
    """

    groups: list[SessionHits]
    blocks: int | None
    sessions: int | None
    after: int | None
    stopped: bool
    ending: tuple[int, int] | None = None
    all_read: bool = False
    searched: tuple[int, int] | None = None

    @property
    def shown(self) -> int:
        """Number of hits on the page."""
        return sum(len(one.shown) for one in self.groups)


def search_by_session(
    teams: Collection[Team],
    wanted: Wanted,
    sessions: QuerySet[Session],
    *,
    state: State | None = None,
    after: int = 0,
    each: int = HITS,
) -> SessionPage | None:
    """Search as `search` does, by session; None if the index finds more than COUNTED blocks.

    `state` keeps the hits that end like that. The time is bounded by `deadline` between reads.
    """
    owners = owners_of(teams, sessions) if wanted.required else []
    if not owners or is_hidden(wanted.query):
        return SessionPage([], 0, 0, None, False)
    until = time.monotonic() + deadline(state)
    keys = text_index.holding(wanted.required, owners, below=None, limit=looked_up.COUNTED + 1)
    if len(keys) > looked_up.COUNTED:
        return None
    known, of = sessions_of(keys, sessions)
    by_session: dict[UUID, list[int]] = {}
    for key in keys:
        if of.get(key) in known:
            by_session.setdefault(of[key], []).append(key)
    ranked = _ranked(by_session)
    blocks = sum(map(len, by_session.values()))
    groups: list[SessionHits] = []
    passed, late = after, False
    for part in _parts(ranked[after:], by_session):
        groups += _groups(part, by_session, known, wanted, state, each)
        passed += len(part)
        late = time.monotonic() > until
        if late or sum(len(one.shown) for one in groups) >= HITS:
            break
    end = passed >= len(ranked)
    page = SessionPage(groups, blocks, len(ranked), None if end else passed, late and not end)
    page = _as_seen(replace(page, searched=(min(passed, len(ranked)), len(ranked))))
    if state is None:
        return page
    counted, whole = list(groups), all(len(keys) <= AT_ONCE for keys in by_session.values())
    for part in _parts([*ranked[:after], *ranked[passed:]], by_session):
        if time.monotonic() > until + COUNTING:
            whole = False
            break
        counted += _groups(part, by_session, known, wanted, state, each)
    ending = sum(one.found for one in counted), len(counted)
    return replace(page, ending=ending, all_read=whole)


def _as_seen(page: SessionPage) -> SessionPage:
    """The page without the counts of the index where content is masked, which it counts too."""
    if view() is None:
        return page
    return replace(page, blocks=page.shown, sessions=len(page.groups), searched=None)


def _ranked(found: Collection[UUID]) -> list[UUID]:
    rows = Session.objects.filter(pk__in=found).values_list("pk", "demo", "ended_at")
    return [pk for pk, *_ in sorted(rows, key=lambda one: (one[1], -(one[2] or 0), one[0]))]


def _parts(ranked: Sequence[UUID], keys: dict[UUID, list[int]]) -> Iterator[list[UUID]]:
    """Sessions in lists whose blocks are read together."""
    part: list[UUID] = []
    size = 0
    for pk in ranked:
        more = min(len(keys[pk]), AT_ONCE)
        if part and size + more > AT_ONCE:
            yield part
            part, size = [], 0
        part.append(pk)
        size += more
    if part:
        yield part


def _groups(
    part: list[UUID],
    keys: dict[UUID, list[int]],
    teams: dict[UUID, UUID],
    wanted: Wanted,
    state: State | None,
    each: int,
) -> Iterator[SessionHits]:
    looked = [key for pk in part for key in keys[pk][:AT_ONCE]]
    by_session: dict[UUID, list[Hit]] = {}
    for hit in hits_of(wanted, list(matching(looked, teams, wanted.query))):
        by_session.setdefault(hit.session.pk, []).append(hit)
    for pk in part:
        hits = by_session.get(pk, [])
        shown = [hit for hit in hits if state is None or hit.presence.state == state]
        shown.sort(key=lambda hit: (wanted.error and not hit.error_line, not hit.together))
        if shown:
            whole = len(keys[pk]) <= AT_ONCE
            yield SessionHits(
                shown[0].session,
                shown[:each],
                len(shown) > each or not whole,
                Counter(hit.presence.state for hit in hits) if whole else None,
                len(shown),
            )


def newest_blocks(
    teams: Collection[Team],
    wanted: Wanted,
    sessions: QuerySet[Session],
    *,
    state: State | None,
    after: int | None,
    each: int,
    blocks: int | None,
) -> SessionPage:
    """Search by block, for words that too many blocks hold, or in one session that has many:
    `blocks`, if known."""
    found = search(teams, wanted, sessions, state=state, after=after, each=each)
    by_session: dict[UUID, list[Hit]] = {}
    for hit in found.hits:
        by_session.setdefault(hit.session.pk, []).append(hit)
    groups = [
        SessionHits(hits[0].session, hits, pk in found.more) for pk, hits in by_session.items()
    ]
    page = SessionPage(groups, blocks, None, found.after, found.stopped)
    if view() is not None or (groups and state is None):
        return page
    every = text_index.holding(
        wanted.required, owners_of(teams, sessions), below=None, limit=PROGRESS
    )
    passed = [key for key in every if found.after is None or key >= found.after]
    return replace(page, searched=(len(passed), len(every)))
