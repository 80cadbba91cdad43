"""What a search for "step 40" offers: that step of the longest sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.db.models import QuerySet

from sessions.models import Session
from sessions.models.web.shown import holding
from sessions.views.web.places import step_url

OFFERED = 5
"""Sessions offered."""

_ASKED = re.compile(r"(?:^|\s)(?:step|#)\s?(\d{1,7})(?=\s|$)", re.IGNORECASE)
_FILLERS = frozenset(
    ("at", "did", "in", "it", "longest", "model", "of", "see", "session", "the", "what")
)


@dataclass(frozen=True, slots=True)
class StepOffer:
    """A step of a session, and its replay."""

    session: Session
    step: int

    @property
    def url(self) -> str:
        """The replay at the step."""
        return step_url(self.session, self.step)


def step_offers(sessions: QuerySet[Session], asked: str) -> list[StepOffer]:
    """Return the step that a search names in the longest sessions that have it and that hold
    the other words in their titles or ids; empty if the search names none."""
    match = _ASKED.search(asked)
    if match is None or (step := int(match[1])) < 1:
        return []
    words = re.findall(r"[^\s?]+", asked[: match.start()] + " " + asked[match.end() :])
    rows = sessions.filter(step_count__gte=step).order_by("-step_count", "pk")
    for word in words:
        if word.lower() not in _FILLERS:
            rows = holding(rows, "title", word) | rows.filter(external_id__icontains=word)
    return [StepOffer(session, step) for session in rows[:OFFERED]]
