"""Search in the texts of all blocks of a team's sessions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from django.db.models import OuterRef, QuerySet

from compaction.context import wire
from sessions.models.accounts.teams import Team
from sessions.models.record.demo_data import listed
from sessions.models.record.messages import Block
from sessions.models.record.revisions import Entry, Replacement, Run
from sessions.models.record.sessions import Session
from sessions.models.record.shown_runs import shown_runs
from sessions.models.record.values import readable
from sessions.models.search import text_index
from sessions.models.search.hidden import deadline, is_hidden
from sessions.models.search.looked_up import Wanted, owners_of, replacements, sessions_of
from sessions.models.search.presence import IN_CONTEXT, BlockState, State, presences
from sessions.models.search.search_words import SearchQuery, searched_text
from sessions.models.web.happened import happened_in
from sessions.models.web.periods import LAST

HITS = 50
"""Hits per page."""

STRIDES = (200, 2_000)
"""Blocks that are looked at together: at first, and at most."""

AT_ONCE = 50
"""Blocks whose texts are read together."""

GONE: frozenset[State] = frozenset({"named", "retrievable", "lost", "left"})
"""States of blocks that left the context."""

BEFORE, AFTER = 80, 220
"""Length of an excerpt around the match, in code points."""


class _Matching(NamedTuple):
    key: int
    session: UUID
    block: Block | Replacement
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A block that matches: its session, the run that its replay opens with, an excerpt in parts
    (whether it matches, and its text), and where the block is at the end of that run.

    A replacement that matches is `replacement`, the text that stood from `step` on in a managed
    context; `run` is that context's, and `block` the first that it replaced.
    """

    session: Session
    run: Run | None
    block: Block
    excerpt: list[tuple[bool, str]]
    presence: BlockState
    step: int
    replacement: str = ""
    """Its name in the addresses of the replay."""
    error_line: bool = False
    """Whether the excerpt is the line that tells the error of a failed result."""
    together: bool = False
    """Whether the text holds all that was asked as typed, as whole words."""
    key: int = 0
    """In the index."""


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
    state: State | None = None,
    after: int | None = None,
    each: int = HITS,
    limit: int = HITS,
) -> SearchPage:
    """Search blocks of `sessions`, which belong to these teams; at most `each` hits per session.

    `state` keeps the hits that end like that. A query without a word finds nothing but failed tool
    calls. The time is bounded by `deadline` between reads: a page without hits may be followed by
    one with some.
    """
    owners = owners_of(teams, sessions) if wanted.required else []
    if not owners or is_hidden(wanted.query):
        return NOTHING
    until = time.monotonic() + deadline(state)
    found: list[_Matching] = []
    shown: Counter[UUID] = Counter()
    more: set[UUID] = set()

    def page(after: int | None, *, stopped: bool = False) -> SearchPage:
        return SearchPage(hits_of(wanted, found), frozenset(more), after, stopped)

    for keys in _strides(wanted, owners, after):
        for part, known in _of_sessions(_gone(keys) if state in GONE else keys, sessions):
            matches = list(matching(part, known, wanted.query))
            for match in matches if state is None else _ending(wanted, matches, state):
                pk = match.session
                if shown[pk] == each:
                    more.add(pk)
                    continue
                shown[pk] += 1
                found.append(match)
                if len(found) == limit:
                    return page(match.key)
            if time.monotonic() > until:
                return page(part[-1], stopped=True)
        if time.monotonic() > until:
            return page(keys[-1], stopped=True)
    return page(None)


def _gone(keys: list[int]) -> list[int]:
    """The blocks that left the context of a run: no others are read to find what is lost."""
    rows = Entry.objects.filter(block__in=keys, to_step__isnull=False)
    gone = set(rows.values_list("block", flat=True))
    return [key for key in keys if key in gone]


def _ending(wanted: Wanted, found: list[_Matching], state: State) -> Iterator[_Matching]:
    ending = {hit.key for hit in hits_of(wanted, found) if hit.presence.state == state}
    return (match for match in found if match.key in ending)


def _strides(wanted: Wanted, owners: list[str], after: int | None) -> Iterator[list[int]]:
    """Keys of blocks with the words, newest first, in growing lists."""
    size, most = STRIDES
    while True:
        keys = text_index.holding(wanted.required, owners, below=after, limit=size)
        if keys:
            yield keys
        if len(keys) < size:
            return
        after, size = keys[-1], min(2 * size, most)


def _of_sessions(
    keys: list[int], sessions: QuerySet[Session]
) -> Iterator[tuple[list[int], dict[UUID, UUID]]]:
    """The keys of blocks of these sessions, in parts, and the sessions' teams.

    The index may hold blocks that another transaction is deleting.
    """
    known, of = sessions_of(keys, sessions)
    left = [key for key in keys if of.get(key) in known]
    for start in range(0, len(left), AT_ONCE):
        yield left[start : start + AT_ONCE], known


def matching(keys: list[int], teams: dict[UUID, UUID], query: SearchQuery) -> Iterator[_Matching]:
    """Blocks and replacements whose texts match, in the order of `keys`."""
    found: dict[int, tuple[UUID, Block | Replacement]] = {
        key: (one.session_id, one)
        for key, one in Block.objects.select_related("message").in_bulk(keys).items()
    }
    replaced = Replacement.objects.select_related("run").defer(*(f"run__{n}" for n in Run.LARGE))
    for pk, made in replaced.in_bulk(replacements(keys)).items():
        found[text_index.REPLACEMENTS + pk] = made.run.session_id, made
    texts = texts_of(found.values(), teams)
    for key in keys:
        if key in found and query.matches(text := texts.get(found[key][1].sha, "")):
            yield _Matching(key, *found[key], text)


def texts_of(
    found: Iterable[tuple[UUID, Block | Replacement]], teams: dict[UUID, UUID]
) -> dict[str, str]:
    """The searched texts of blocks, given with their sessions, by hash; `teams` by session."""
    by_team: dict[UUID, list[str]] = {}
    for session, block in found:
        by_team.setdefault(teams[session], []).append(block.sha)
    return {
        sha: searched_text(wire.decode(data))
        for team, shas in by_team.items()
        for sha, data in readable(team, shas).items()
    }


def hits_of(wanted: Wanted, found: list[_Matching]) -> list[Hit]:
    rows = Session.objects.defer("sparkline", "meta")
    sessions = rows.in_bulk({match.session for match in found})
    runs = shown_runs(list(sessions.values()))
    left = [match for match in found if match.session in sessions]
    originals = [match.block for match in left if isinstance(match.block, Block)]
    where: dict[int, BlockState] = {}
    for team in {session.team_id for session in sessions.values()}:
        blocks = [one for one in originals if sessions[one.session_id].team_id == team]
        where |= presences(team, blocks, runs, wanted.query.held_by)
    stays = _stays([one.block for one in left if isinstance(one.block, Replacement)])
    hits = []
    for key, pk, block, text in left:
        failed = isinstance(block, Block) and block.error
        together = wanted.query.together_in(text)
        line = wanted.query.error_line(text) if failed else None
        excerpt = wanted.query.excerpt(text, before=BEFORE, after=AFTER, line=line)
        if isinstance(block, Block):
            state = where.get(block.pk, IN_CONTEXT)
            shown = Hit(sessions[pk], runs.get(pk), block, excerpt, state, block.born)
            hits.append(replace(shown, error_line=line is not None, together=together, key=key))
        elif block.pk in stays:
            original, entry, name = stays[block.pk]
            ended = entry.to_step is not None
            state = BlockState("ended", entry.to_step) if ended else IN_CONTEXT
            step = entry.from_step
            shown = Hit(sessions[pk], block.run, original, excerpt, state, step, name)
            hits.append(replace(shown, together=together, key=key))
    return hits


def _stays(replacements: list[Replacement]) -> dict[int, tuple[Block, Entry, str]]:
    """The first block that each replacement replaced, its stay, and its name in addresses."""
    found: dict[int, tuple[Block, Entry, str]] = {}
    if not replacements:
        return found
    wanted = {one.pk: one for one in replacements}
    opened = Entry.objects.filter(replacement__in=wanted).values("opened_by__revision")
    beside = Entry.objects.filter(opened_by__revision__in=opened, replacement__isnull=False)
    originals = {
        (block.session_id, block.position): block
        for block in Block.objects.select_related("message").filter(
            session__in={one.run.session_id for one in replacements},
            position__in={one.position for one in replacements},
        )
    }
    numbers: Counter[int] = Counter()
    for entry in beside.select_related("opened_by__revision").order_by("position", "pk"):
        revision = entry.opened_by.revision if entry.opened_by else None
        if revision is None:
            continue
        name = f"r{revision.number}.{numbers[revision.pk]}"
        numbers[revision.pk] += 1
        made = wanted.get(entry.replacement_id or 0)
        if made is not None:
            original = originals.get((made.run.session_id, made.position))
            if original is not None:
                found.setdefault(made.pk, (original, entry, name))
    return found


def sessions_with(
    teams: Collection[Team],
    *,
    agent: str = "",
    model: str = "",
    since: int | None = None,
    until: int | None = None,
    cost: int | None = None,
    demo: bool = False,
) -> QuerySet[Session]:
    """Sessions of these teams with these properties; empty ones do not narrow.

    They happened in [since, until), in ms, and cost at least `cost` micro-dollars. Demo sessions
    beside real ones are left out unless `demo`.
    """
    rows = Session.objects.filter(listed(OuterRef("team"), demo=demo), team__in=teams)
    if agent:
        rows = rows.filter(agent=agent)
    if model:
        rows = rows.filter(model=model)
    if cost is not None:
        rows = rows.filter(cost_microusd__gte=cost)
    if since is not None or until is not None:
        rows = rows.filter(happened_in([(since or 0, LAST if until is None else until)]))
    return rows
