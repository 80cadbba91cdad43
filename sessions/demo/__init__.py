"""The demo: scripted agents that play sessions worth looking at. Our own making, word for word.

Nothing here knows Django or a clock, and nothing is random: the same base time gives the same
records. The files that the agents read are ContextLab's own, as installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sessions.demo.cast import LIVE, PARTS, perform
from sessions.demo.provider import Count
from sessions.importers import records

__all__ = ["EXTERNAL_IDS", "play", "play_live"]

EXTERNAL_IDS = tuple(part.external_id for part in PARTS)
"""Ids of the sessions that people start, in the order in which they are played."""


def play(
    now_ms: int, count: Count, without: Collection[str] = ()
) -> Iterator[list[records.Session]]:
    """Sessions of the demo, each with its sub-agents behind it; they lie in the days before
    `now_ms` (milliseconds since the epoch). External ids in `without` are left out."""
    for part in PARTS:
        if part.external_id not in without:
            yield perform(part, now_ms, count)


def play_live(now_ms: int, count: Count) -> list[records.Session]:
    """Two sessions of agents that report while they run, in the half hour before `now_ms`: one
    that is done, and one that is not."""
    return [perform(part, now_ms, count)[0] for part in LIVE]
