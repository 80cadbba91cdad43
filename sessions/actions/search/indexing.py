"""Index: make the texts of blocks and replacements searchable, in the background."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from compaction.context import wire
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.models import Block, Edit, Job, Run, Session, Team
from sessions.models.erasure.kept import SessionErased, while_kept
from sessions.models.record.values import CHUNK, readable
from sessions.models.search import session_names, text_index
from sessions.models.search.search_words import label, searched_text, words_of
from sessions.models.web.statements import Statement, given_uuid

KEPT = Q(erasing=None, content_erased=None, archived=None)
"""Sessions whose content is not archived nor erased, nor about to be."""

UNINDEXED = KEPT & Q(block_count__gt=F("indexed_blocks"))

UNINDEXED_RUNS = Q(
    origin="managed",
    head__gt=F("indexed_head"),
    session__erasing=None,
    session__content_erased=None,
    session__archived=None,
)
"""Managed runs with replacements that are not in the index."""

RUNS = 100
"""Most runs whose replacements are indexed per transaction."""

STRIDE = CHUNK
"""Blocks per transaction."""

PAUSE = 5.0
"""Seconds between an append and the job, so that one job serves many appends."""

PAGES = 500
"""Pages of the index merged at once: some 2 MB."""

TURN = 30.0
"""Seconds after which another job continues, so that others get their turn."""


class _Stretch(NamedTuple):
    """Blocks of a session at positions [start, end)."""

    session: UUID
    start: int
    end: int


class _Row(NamedTuple):
    pk: int
    session_id: UUID
    type: str
    kind: str
    tool: str
    error: bool
    sha: str


def ask(team: Team, *, after: float = 0) -> Job | None:
    """Queue the indexing of a team's new blocks and replacements; None if there are none."""
    if not _WITH_NEWS.rows(team=team.pk):
        return None
    return jobs.ask_once(team, "index", {}, f"index:{team.pk}", after=after)


_WITH_NEWS = Statement(
    lambda: Team.objects.filter(
        Exists(Session.objects.filter(UNINDEXED, team=OuterRef("pk")))
        | Exists(Run.objects.filter(UNINDEXED_RUNS, session__team=OuterRef("pk"))),
        pk=given_uuid("team"),
    ).values_list("pk")
)
"""A team that has something to index."""


def ask_everywhere() -> None:
    """Queue the indexing for every team, of what an earlier release or a command stored."""
    for team in Team.objects.all():
        ask(team)


def index(running: Running) -> None:
    """Run the `index` job: no payload, or {removed} after blocks were removed. Leaves no row on
    success."""
    if running.payload.get("removed"):
        _merge(running)
    until = time.monotonic() + TURN
    done = 0
    while time.monotonic() < until:
        many = index_some(running.team) + index_replacements(running.team)
        if not many:
            break
        done += many
        running.progress(done, None, "blocks")
    with transaction.atomic():
        # In this order: blocks stored after the look belong to an append whose request for a job
        # waits for this transaction.
        jobs.remove(running.job.id, running.token)
        ask(running.team)


def index_some(team: Team) -> int:
    """Index some blocks of a team that are not in the index; return their number, 0 if there are
    none."""
    parts = _next_parts(team)
    found = [(part, _entries(team, _rows(part.session, part.start, part.end))) for part in parts]
    with transaction.atomic():
        for part, entries in found:
            mine = Session.objects.filter(KEPT, pk=part.session, indexed_blocks=part.start)
            there = mine.select_for_update(of=("self",)).exists()
            # Traces are written again from a step on.
            if there and _are_there(entries) and mine.update(indexed_blocks=part.end):
                text_index.add(entries)
    return sum(part.end - part.start for part in parts)


def _are_there(entries: Sequence[text_index.IndexRow]) -> bool:
    return not entries or Block.objects.filter(pk=entries[-1][0]).exists()


def index_replacements(team: Team) -> int:
    """Index the replacements of some managed runs of a team; return the number of their new
    revisions, 0 if there are none."""
    done = 0
    for run in _runs(team).only("session_id", "head", "indexed_head").order_by("pk")[:RUNS]:
        last = min(run.head, run.indexed_head + STRIDE)
        entries = _entries(team, _replaced(run, run.indexed_head, last))
        with suppress(SessionErased), while_kept(run.session_id):
            mine = _runs(team).filter(pk=run.pk, indexed_head=run.indexed_head)
            if mine.update(indexed_head=last):
                text_index.add(entries)
        done += last - run.indexed_head
    return done


def _runs(team: Team) -> QuerySet[Run]:
    return Run.objects.filter(UNINDEXED_RUNS, session__team=team)


def _replaced(run: Run, after: int, last: int) -> list[_Row]:
    """The replacements made by the revisions (after, last] of a run."""
    made = Edit.objects.filter(
        revision__run=run,
        revision__number__gt=after,
        revision__number__lte=last,
        replacement__isnull=False,
    )
    names = (
        "replacement_id",
        *(f"replacement__{name}" for name in ("type", "kind", "tool", "sha")),
    )
    return [
        _Row(text_index.REPLACEMENTS + pk, run.session_id, type, kind, tool, False, sha)
        for pk, type, kind, tool, sha in made.order_by("replacement_id").values_list(*names)
    ]


def _next_parts(team: Team) -> list[_Stretch]:
    due = Session.objects.for_team(team).filter(UNINDEXED).order_by("pk")
    parts: list[_Stretch] = []
    left = STRIDE
    for pk, start, count in due.values_list("pk", "indexed_blocks", "block_count")[:STRIDE]:
        if left:
            parts.append(_Stretch(pk, start, min(count, start + left)))
            left -= parts[-1].end - start
    return parts


def _rows(session: UUID, start: int, end: int) -> list[_Row]:
    stored = Block.objects.filter(session=session, position__gte=start, position__lt=end)
    return [_Row(*row) for row in stored.order_by("position").values_list(*_Row._fields)]


def _entries(team: Team, rows: Sequence[_Row]) -> list[text_index.IndexRow]:
    """The words and labels of blocks. Of a damaged block, the labels."""
    data = readable(team.pk, [row.sha for row in rows])
    known = {sha: words_of(searched_text(wire.decode(one))) for sha, one in data.items()}
    return [(row.pk, {*known.get(row.sha, ()), *_labels(team.pk, row)}) for row in rows]


def _labels(team: UUID, row: _Row) -> Iterable[str]:
    yield label("team", team)
    yield label("session", row.session_id)
    yield label("kind", row.kind)
    if row.tool:
        yield label("tool", row.tool.lower())
    if row.error:
        yield label("error", 1)


def _merge(running: Running) -> None:
    for _ in merged():
        running.progress(0, None, "pages")


def merged() -> Iterator[None]:
    """Merge the indexes whole, part by part, so that removed words leave the file."""
    for table in (text_index.TABLE, session_names.GRAMS):
        text_index.merge(-PAGES, table)
        while text_index.merge(PAGES, table) > 1:
            yield


def forget(sender: type, instance: Session, **_: Any) -> None:  # noqa: ARG001
    """Remove a session's blocks from the index, before the session is deleted."""
    removed = False
    while forget_some(instance):
        removed = True
    if removed:
        transaction.on_commit(merge_soon, robust=True)


def forget_some(session: Session) -> bool:
    """Remove some of a session's blocks or replacements from the index; return whether there were
    any."""
    with transaction.atomic():
        rows = Session.objects.select_for_update().filter(pk=session.pk)
        last = rows.values_list("indexed_blocks", flat=True).first() or 0
        if last:
            start = (last - 1) // STRIDE * STRIDE
            text_index.remove(_entries(session.team, _rows(session.pk, start, last)))
            rows.update(indexed_blocks=start)
            return True
        run = session.runs.filter(indexed_head__gt=0).only("session_id", "indexed_head").first()
        if run is None:
            return False
        after = max(run.indexed_head - STRIDE, 0)
        text_index.remove(_entries(session.team, _replaced(run, after, run.indexed_head)))
        Run.objects.filter(pk=run.pk).update(indexed_head=after)
        return True


def forget_from(session: Session, position: int) -> None:
    """Remove a session's blocks from a position on from the index, before they are deleted. Use in
    a transaction, in that search cannot have found more of them."""
    rows = Session.objects.select_for_update(of=("self",)).filter(pk=session.pk)
    last = rows.values_list("indexed_blocks", flat=True).first() or 0
    for start in range(position, last, STRIDE):
        found = _rows(session.pk, start, min(start + STRIDE, last))
        text_index.remove(_entries(session.team, found))
    if position < last:
        rows.update(indexed_blocks=position)


def merge_soon() -> None:
    """Queue the merging of the index, after words were removed from it."""
    # The team itself may be gone; all teams share the index.
    team = Team.objects.first() if connection.vendor == "sqlite" else None
    if team is not None:
        jobs.ask_once(team, "index", {"removed": True}, "index:removed")
