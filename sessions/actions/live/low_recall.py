"""Running sessions whose contexts lacked much of what their calls used again."""

from __future__ import annotations

from sessions.actions.policies.bounds import BOUNDS
from sessions.figures import percent
from sessions.models import Session

NEEDS = 10
"""Least uses of facts that make a share (our choice)."""


def low_recall(session: Session) -> str:
    """The needed-later recall in context of a session, if it is below the default guardrail of a
    rollout; empty if it is not, or not known. Reads the session's assessment."""
    found = getattr(session, "assessment", None)
    least = BOUNDS["recall"].default
    if found is None or least is None or (found.needs or 0) < NEEDS:
        return ""
    share = (found.in_context or 0) / found.needs
    if 100 * share >= least:
        return ""
    return (
        f"Recall in context ≈{percent(share)} (estimated): of {found.needs:,} uses of facts to "
        f"step {found.steps:,}, {found.in_context or 0:,} were of facts still there."
    )
