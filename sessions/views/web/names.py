"""Names of runs in URLs."""

from __future__ import annotations

from sessions.models import Run


def run_name(run: Run) -> str:
    """The name of a run in URLs: "recorded", or its id."""
    return "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk)
