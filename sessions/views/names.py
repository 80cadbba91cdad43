"""How runs are called in addresses."""

from __future__ import annotations

from sessions.models import Run


def run_name(run: Run) -> str:
    """A run in an address: "recorded", or its id."""
    return "recorded" if run.origin == Run.Origin.RECORDED else str(run.pk)
