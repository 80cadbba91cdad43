"""Sessions worth comparing with one: those that did the same task."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from os.path import commonprefix

from sessions.actions.replay.comparisons import first_words
from sessions.models import Session
from sessions.models.record.demo_data import listed

NEWEST = 200
"""Newest sessions of a team among which similar ones are looked for."""

ALIKE = 0.6
"""Least similarity of two titles that is worth a suggestion (difflib's ratio)."""

TITLE_CHARS = 100


@dataclass(frozen=True, slots=True)
class SimilarSession:
    """A session to compare with, and why."""

    session: Session
    why: str

    @property
    def name(self) -> str:
        """Its title."""
        return str(self.session)


def suggestions(session: Session, most: int = 12) -> list[SimilarSession]:
    """Sessions that did the same task: named so, with the same first message, or with a title
    alike; the nearest first. Looks at the `NEWEST` of the team, and all of its task."""
    its = listed(session.team_id, demo=session.demo)
    others = Session.objects.for_team(session.team).filter(its).exclude(pk=session.pk)
    others = others.defer("sparkline")
    found = {one.pk: one for one in others.order_by("-changed")[:NEWEST]}
    if session.task:
        found |= {one.pk: one for one in others.filter(task=session.task)[:NEWEST]}
    first = first_words([session, *found.values()])
    ranked: list[tuple[tuple[float, int], SimilarSession]] = []
    for one in found.values():
        if session.task and one.task == session.task:
            ranked.append(((3, 0), SimilarSession(one, "same task")))
        elif first.get(session.pk) and first.get(one.pk) == first[session.pk]:
            ranked.append(((2, 0), SimilarSession(one, "same first message")))
        elif (ratio := _alike(str(session), str(one))) >= ALIKE:
            shared = len(commonprefix([str(session), str(one)]))
            ranked.append(((ratio, shared), SimilarSession(one, "similar title")))
    ranked.sort(key=lambda row: row[0], reverse=True)
    return [suggestion for _, suggestion in ranked[:most]]


def _alike(title: str, other: str) -> float:
    matcher = SequenceMatcher(None, title[:TITLE_CHARS], other[:TITLE_CHARS], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= ALIKE else 0.0
