"""Memory search: full text over boards and over shared summaries."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, ExpressionWrapper, OuterRef, Q, QuerySet
from django.db.models.fields import BooleanField

from compaction.summaries.lines import words
from sessions.models.accounts.teams import Team
from sessions.models.memory.boards import Board, Note, Share
from sessions.models.record.demo_data import listed

MOST_TERMS = 16
"""Most words of a query that are used."""

CANDIDATES = 400
"""Most rows of each kind to rank, newest first (our choice)."""

EXCERPT = 600
"""Length of an excerpt, in code points."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A search hit: a note or a shared summary, with its source.

    `score` is above 0, higher is better; `stale` says why it may no longer hold; `demo` marks what
    a demo session left.
    """

    kind: str
    text: str
    score: float
    stale: str
    untrusted: bool
    agent: str
    task: str
    board: tuple[str, str]
    session: UUID | None
    message: int | None
    note: int | None
    share: int | None
    created: datetime
    demo: bool


def with_demo(boards: QuerySet[Board]) -> QuerySet[Board]:
    """Boards with `demo`: whether only demo sessions wrote on it."""
    notes = Note.objects.filter(board=OuterRef("pk"))
    written = Q(Exists(notes.filter(session__demo=True)))
    written &= ~Q(Exists(notes.filter(session__demo=False)))
    its = ExpressionWrapper(Q(session__demo=True) | written, BooleanField())
    return boards.annotate(demo=its)


def terms(text: str) -> list[str]:
    """The words to search for: each once, longer ones first."""
    found = dict.fromkeys(
        word for word in words(text[:20_000]) if len(word) > 2 or not word.isascii()
    )
    return sorted(found, key=lambda word: -len(word))[:MOST_TERMS] or list(words(text))[:MOST_TERMS]


def search(
    teams: Collection[Team],
    query: str,
    *,
    task: str = "",
    limit: int = 20,
    demo: bool = False,
) -> list[Remembered]:
    """Search the teams' boards and shares for these words; return at most `limit` hits, best first.

    `task` restricts the search to one task. Rare words weigh more, stale knowledge weighs less, and
    newer hits win ties. What demo sessions left is skipped beside real sessions unless `demo`. The
    database scans all of the teams' notes and shares, so the time grows with them.
    """
    wanted = terms(query)
    if not wanted:
        return []
    of_notes = Q(session=None) | listed(OuterRef("board__team"), "session__", demo=demo)
    of_shares = listed(OuterRef("team"), "session__", demo=demo)
    notes = Note.objects.filter(of_notes, board__team__in=teams, removed=None, share=None)
    shares = Share.objects.filter(of_shares, team__in=teams).exclude(summary="")
    if task:
        notes = notes.filter(Q(board__kind=Board.Kind.TASK, board__name=task) | Q(task=task))
        shares = shares.filter(task=task)
    found = [
        _of_note(row) for row in _holding(notes.select_related("board", "session"), "text", wanted)
    ]
    found += [
        _of_share(row) for row in _holding(shares.select_related("session"), "summary", wanted)
    ]
    return _ranked(found, wanted, query)[:limit]


def _holding(rows: QuerySet, field: str, wanted: Sequence[str]) -> Iterable:
    either = Q()
    for term in wanted:
        either |= Q(**{f"{field}__icontains": term})
    return rows.filter(either).order_by("-pk")[:CANDIDATES]


def _of_note(row: Note) -> Remembered:
    return Remembered(
        row.kind, row.text, 0, row.stale, row.untrusted, row.agent, row.task,
        (row.board.kind, row.board.name), row.session_id, row.message, row.pk, None, row.created,
        row.session is not None and row.session.demo,
    )  # fmt: skip


def _of_share(row: Share) -> Remembered:
    kind, name = (Board.Kind.TASK, row.task) if row.task else (Board.Kind.SESSION, row.session_id)
    return Remembered(
        "summary", row.summary, 0, "", True, row.agent, row.task,
        (str(kind), str(name)), row.session_id, None, None, row.pk, row.created,
        row.session.demo,
    )  # fmt: skip


def _ranked(found: list[Remembered], wanted: Sequence[str], query: str) -> list[Remembered]:
    texts = [one.text.casefold() for one in found]
    held = {term: sum(term in text for text in texts) for term in wanted}
    worth = {term: math.log(1 + len(found) / many) for term, many in held.items() if many}
    whole = " ".join(query.casefold().split())
    scored = []
    for one, text in zip(found, texts, strict=True):
        score = sum(value for term, value in worth.items() if term in text)
        score *= 1.5 if len(whole) > 3 and whole in text else 1
        score *= 0.5 if one.stale else 1
        if score:
            scored.append((score, one.created, _excerpted(one, score, text, wanted)))
    scored.sort(key=lambda entry: (entry[0], entry[1]), reverse=True)
    return [one for _, _, one in scored]


def _excerpted(one: Remembered, score: float, folded: str, wanted: Sequence[str]) -> Remembered:
    """Shorten a long text to the part around the first matching word."""
    text = one.text
    if len(text) > EXCERPT:
        places = [place for term in wanted if (place := folded.find(term)) >= 0]
        start = max(min(places, default=0) - EXCERPT // 4, 0)
        text = ("…" if start else "") + text[start : start + EXCERPT] + "…"
    fields = {name: getattr(one, name) for name in Remembered.__slots__}
    return Remembered(**{**fields, "text": text, "score": round(score, 3)})


def board_query(board: Board) -> str:
    """A board as a query: its task and newest plan."""
    rows = Note.objects.filter(board=board, removed=None, kind__in=("task", "plan"))
    texts = list(rows.order_by("pk").values_list("kind", "text"))
    task = next((text for kind, text in texts if kind == "task"), "")
    plan = next((text for kind, text in reversed(texts) if kind == "plan"), "")
    return f"{task[:2_000]}\n{plan[:2_000]}".strip()
