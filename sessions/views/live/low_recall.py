"""Running sessions whose contexts lacked much of what their calls used again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from sessions.actions.assessments.assessments import SOONEST
from sessions.actions.policies.bounds import BOUNDS
from sessions.figures import percent
from sessions.models import Assessment, Session

NEEDS = 10
"""Least uses of facts that make a share (our choice)."""


@dataclass(frozen=True, slots=True)
class LowRecall:
    """A recall below the default guardrail of a rollout, as the last assessment found it."""

    session: Session
    found: Assessment

    @property
    def sentence(self) -> str:
        """The share, up to which step, and when that is assessed again."""
        found = self.found
        there, needs = found.in_context or 0, found.needs or 0
        said = (
            f"Recall in context ≈{percent(there / needs)} (estimated): of {needs:,} uses of facts "
            f"to step {found.steps:,}, {there:,} were of facts still there."
        )
        if self.session.step_count == found.steps:
            return said
        following = found.steps + max(SOONEST, found.steps)
        return f"{said} Assessed again at step {following:,}, or when it rests."

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """The worst facts that were missing: each with the page that says why, and what it was."""
        return list(self._missing(self.found.missing or ()))

    def _missing(self, facts: list[dict[str, Any]] | tuple[()]) -> Iterator[tuple[str, str, str]]:
        url = reverse("why", args=[self.session.pk])
        for one in facts:
            asked = urlencode({"text": one["fact"], "step": one["step"]})
            times = f", used {one['uses']} times without" if one["uses"] > 1 else ""
            yield one["fact"], f"{url}?{asked}", f"{one['state']} at step {one['step']:,}{times}"


def low_recall(session: Session) -> LowRecall | None:
    """The needed-later recall in context of a session, if it is below the default guardrail of a
    rollout; None if it is not, or not known. Reads the session's assessment."""
    found = getattr(session, "assessment", None)
    least = BOUNDS["recall"].default
    if found is None or least is None or (found.needs or 0) < NEEDS:
        return None
    if 100 * (found.in_context or 0) >= least * found.needs:
        return None
    return LowRecall(session, found)
