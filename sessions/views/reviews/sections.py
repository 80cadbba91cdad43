"""Sections of a summary, for pages."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.summaries import sections as read
from compaction.summaries.summary import board_apart

LONG = 1500
"""Characters from which a section is folded."""


@dataclass(frozen=True, slots=True)
class SummarySection(read.Section):
    """A section of a summary; text before the first heading has no title."""

    @property
    def long(self) -> bool:
        """Whether to fold it."""
        return len(self.text) > LONG


def sections(text: str) -> list[SummarySection]:
    """The sections of a summary; one without a title if none are recognized. The board after it is
    the last one."""
    summary, board = board_apart(text)
    found = [SummarySection(part.title, part.text) for part in read.sections(summary)]
    return [*found, SummarySection("Board", board)] if board else found
