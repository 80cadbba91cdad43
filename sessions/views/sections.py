"""A summary's sections as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.summaries import sections as read

LONG = 1500
"""Characters from which a section begins folded."""


@dataclass(frozen=True, slots=True)
class Section(read.Section):
    """A part of a summary; the part before the first heading has no title."""

    @property
    def long(self) -> bool:
        """Whether it would push the rest of the page out of sight."""
        return len(self.text) > LONG


def sections(text: str) -> list[Section]:
    """The summary's sections in order; one without title where none are recognised."""
    return [Section(part.title, part.text) for part in read.sections(text)]
