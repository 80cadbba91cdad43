"""The demo: scripted agents that play realistic sessions, all original content.

Independent of Django and the clock, and deterministic: the same base time gives the same records.
The agents read ContextLab's own files, as installed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sessions.demo.cast import LIVE, PARTS, perform
from sessions.demo.provider import Count
from sessions.importers import records

__all__ = ["EXTERNAL_IDS", "OUTCOMES", "play", "play_live"]

EXTERNAL_IDS = tuple(part.external_id for part in PARTS)
"""Ids of the top-level sessions, in the order they are played."""

OUTCOMES = {part.external_id: part.outcome for part in PARTS}
"""How each of them ended, "" if its agent did not report it."""


def play(
    now_ms: int, count: Count, without: Collection[str] = ()
) -> Iterator[list[records.Session]]:
    """Play the demo sessions, each followed by its sub-agents, dated in the days before `now_ms`
    (ms since the epoch). External ids in `without` are skipped."""
    for part in PARTS:
        if part.external_id not in without:
            yield perform(part, now_ms, count)


def play_live(now_ms: int, count: Count) -> list[records.Session]:
    """Play two live sessions in the half hour before `now_ms`: one finished, one running."""
    return [perform(part, now_ms, count)[0] for part in LIVE]
