"""Lost facts whose line in a message holds the words of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from sessions.actions.reviews.compaction_verdicts import is_missed
from sessions.models import Assessment, Block, FactLedger, Session
from sessions.models.record.replaced import REAL
from sessions.models.record.values import entry_name
from sessions.models.search.search import texts_of
from sessions.models.search.search_words import SearchQuery
from sessions.models.web.happened import ended

SESSIONS = 50
"""Sessions that are looked at, those that ended last (our choice)."""

FACTS = 200
"""Lost facts whose messages are read (our choice)."""

SHOWN = 5
"""Lost facts that a search returns."""

_AROUND = 120
"""Code points shown of a line before and after a fact."""


@dataclass(frozen=True, slots=True)
class LostLine:
    """A lost fact that was needed again at step `needed`, and its line: whether each part is the
    fact, and its text."""

    session: Session
    fact: str
    needed: int
    line: list[tuple[bool, str]]


def lost_lines(sessions: QuerySet[Session], query: SearchQuery) -> list[LostLine]:
    """Return lost facts of these sessions whose line in a message holds the query's words.

    Reads the facts of at most SESSIONS sessions and the texts of at most FACTS messages.
    """
    if not query.words:
        return []
    lost = sessions.filter(assessment__lost_facts__gt=0)
    found = list(lost.order_by(ended().desc())[:SESSIONS])
    known = {one.pk: one for one in found}
    lines = [*_of_ledgers(known.values()), *_of_removals(known.values())][:FACTS]
    blocks = _blocks(lines)
    texts = texts_of(
        [(one.session_id, one) for one in blocks.values()],
        {one.pk: one.team_id for one in found},
    )
    shown: dict[tuple[Any, str], LostLine] = {}
    for session, line in lines:
        block = blocks.get((session.pk, line["block"]))
        around = _line(texts.get(block.sha, ""), line["fact"]) if block else ""
        if around and query.matches(around):
            parts = _parts(around, line["fact"])
            one = LostLine(session, line["fact"], line["needed"], parts)
            shown.setdefault((session.pk, line["fact"]), one)
    return list(shown.values())[:SHOWN]


def _of_ledgers(found: Iterable[Session]) -> Iterator[tuple[Session, dict[str, Any]]]:
    known = {one.pk: one for one in found}
    rows = FactLedger.objects.filter(
        revision__run__session__in=known, revision__run__origin__in=REAL, missed__gt=0
    )
    for of, facts in rows.values_list("revision__run__session", "facts"):
        yield from ((known[of], fact) for fact in facts if is_missed(fact))


def _of_removals(found: Iterable[Session]) -> Iterator[tuple[Session, dict[str, Any]]]:
    known = {one.pk: one for one in found}
    rows = Assessment.objects.filter(session__in=known).exclude(dropped={})
    for of, dropped in rows.values_list("session", "dropped"):
        yield from ((known[of], fact) for facts in dropped.values() for fact in facts)


def _blocks(lines: Iterable[tuple[Session, dict[str, Any]]]) -> dict[tuple[Any, str], Block]:
    wanted = Q(pk__in=[])
    for session, line in lines:
        if line["block"]:
            seq, _, index = line["block"].partition(".")
            wanted |= Q(session=session, message__seq=int(seq), index=int(index or 0))
    rows = Block.objects.filter(wanted).select_related("message")
    return {(one.session_id, entry_name(one)): one for one in rows}


def _line(text: str, fact: str) -> str:
    """The line of a text that holds a fact first; empty if none does."""
    at = text.lower().find(fact.lower())
    if at < 0:
        return ""
    start = max(text.rfind("\n", 0, at) + 1, at - _AROUND)
    end = text.find("\n", at)
    end = min(len(text) if end < 0 else end, at + len(fact) + _AROUND)
    return text[start:end].strip()


def _parts(line: str, fact: str) -> list[tuple[bool, str]]:
    at = line.lower().find(fact.lower())
    end = at + len(fact)
    parts = ((False, line[:at]), (True, line[at:end]), (False, line[end:]))
    return [part for part in parts if part[1]]
