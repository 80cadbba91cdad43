"""Marks of what happened in a session: one table for lists, timeline, rows and legend.

The table is `marks.json`, which the pages' scripts import too (`frontend/src/web/marks.ts`). Its
order is that of importance: where marks fall together on a timeline, the first one shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec


class EventMark(msgspec.Struct, frozen=True):
    """A mark: its symbol, its name for one and for several, and what happened, after a colon."""

    symbol: str
    name: str
    plural: str
    means: str

    def said(self, count: int | None = None) -> str:
        """What it says when pointed at or read aloud: "3 retries: the agent tried …"."""
        named = self.name if count is None else f"{count:,} {self.plural}"
        return f"{'1 ' + self.name.lower() if count == 1 else named}: {self.means}"


MARKS: Mapping[str, EventMark] = msgspec.json.decode(
    Path(__file__).with_name("marks.json").read_bytes(), type=dict[str, EventMark]
)
"""By kind."""
