"""Remarks on the summary settings that strategies share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compaction.proposals.strategy import Remark

LATE = 0.90
"""Share above which a trigger leaves too little room for one step (Shannon)."""
EARLY = 0.30
"""Share below which a trigger summarizes a mostly empty context (our choice)."""


def summary_remarks(given: Any, least: int) -> Iterator[Remark]:
    """Yield remarks on settings with a trigger; `least` is the minimum tokens of the form."""
    if given.trigger > LATE:
        text = (
            f"Less than {100 - LATE * 100:.0f} % is left when it acts: one large result can fill "
            f"the window before the summary is written. Set it to {LATE:.2f} or less; the sources "
            f"use 0.70 and 0.75."
        )
        yield Remark("trigger", text, "warning")
    elif given.trigger < EARLY:
        text = (
            "Summarizes while most of the window is free, and loses content that would still fit. "
            "Set it to 0.50 or more unless you want a lean context."
        )
        yield Remark("trigger", text, "note")
    if given.summary_tokens < least:
        text = (
            f"A summary of {given.summary_tokens} tokens is too short for its form and drops paths "
            f"and numbers first. Set it to {least:,} or more."
        )
        yield Remark("summary_tokens", text, "warning")
    if given.rearm == 0 and given.progress == 0:
        text = (
            "A context that stays above the trigger is summarized again at every step. Set it to "
            "0.10, so that it has to grow first."
        )
        yield Remark("rearm", text, "warning")
