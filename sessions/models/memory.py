"""Memory search: full text over boards, and the summaries that sessions shared."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from compaction.summaries.told import words
from sessions.models.boards import Anchor, Board, Share
from sessions.models.teams import Team

MOST_TERMS = 16
"""Words of a query that are looked for."""

CANDIDATES = 400
"""Rows of each kind that are ranked, the newest of those that hold one of the words (ours)."""

EXCERPT = 600
"""Code points of a text that an answer holds."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """One thing that was found: an anchor or a share, and where it comes from.

    `score` is above 0, the best first; `stale` says why it may no longer hold.
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
    anchor: int | None
    share: int | None
    created: datetime


def terms(text: str) -> list[str]:
    """The words that are looked for: each once, those that tell more first."""
    found = dict.fromkeys(
        word for word in words(text[:20_000]) if len(word) > 2 or not word.isascii()
    )
    return sorted(found, key=lambda word: -len(word))[:MOST_TERMS] or list(words(text))[:MOST_TERMS]


def search(
    teams: Collection[Team], query: str, *, task: str = "", limit: int = 20
) -> list[Remembered]:
    """What the teams' boards and shares hold of these words, the best first; at most `limit`.

    `task` narrows it to one. Rare words count more, knowledge that is stale less, and of equals the
    newer comes first. Work is a scan of the teams' anchors and shares in the database, and grows
    with them.
    """
    wanted = terms(query)
    if not wanted:
        return []
    anchors = Anchor.objects.filter(board__team__in=teams, removed=None, share=None)
    shares = Share.objects.filter(team__in=teams).exclude(summary="")
    if task:
        anchors = anchors.filter(Q(board__kind=Board.Kind.TASK, board__name=task) | Q(task=task))
        shares = shares.filter(task=task)
    found = [_of_anchor(row) for row in _holding(anchors.select_related("board"), "text", wanted)]
    found += [_of_share(row) for row in _holding(shares, "summary", wanted)]
    return _ranked(found, wanted, query)[:limit]


def _holding(rows: QuerySet, field: str, wanted: Sequence[str]) -> Iterable:
    either = Q()
    for term in wanted:
        either |= Q(**{f"{field}__icontains": term})
    return rows.filter(either).order_by("-pk")[:CANDIDATES]


def _of_anchor(row: Anchor) -> Remembered:
    return Remembered(
        row.kind, row.text, 0, row.stale, row.untrusted, row.agent, row.task,
        (row.board.kind, row.board.name), row.session_id, row.message, row.pk, None, row.created,
    )  # fmt: skip


def _of_share(row: Share) -> Remembered:
    kind, name = (Board.Kind.TASK, row.task) if row.task else (Board.Kind.SESSION, row.session_id)
    return Remembered(
        "summary", row.summary, 0, "", True, row.agent, row.task,
        (str(kind), str(name)), row.session_id, None, None, row.pk, row.created,
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
    """With the part of a long text in which the first of the words stands."""
    text = one.text
    if len(text) > EXCERPT:
        places = [place for term in wanted if (place := folded.find(term)) >= 0]
        start = max(min(places, default=0) - EXCERPT // 4, 0)
        text = ("…" if start else "") + text[start : start + EXCERPT] + "…"
    fields = {name: getattr(one, name) for name in Remembered.__slots__}
    return Remembered(**{**fields, "text": text, "score": round(score, 3)})


def board_query(board: Board) -> str:
    """A board as a query: its task and its newest plan."""
    rows = Anchor.objects.filter(board=board, removed=None, kind__in=("task", "plan"))
    texts = list(rows.order_by("pk").values_list("kind", "text"))
    task = next((text for kind, text in texts if kind == "task"), "")
    plan = next((text for kind, text in reversed(texts) if kind == "plan"), "")
    return f"{task[:2_000]}\n{plan[:2_000]}".strip()
