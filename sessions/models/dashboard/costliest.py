"""The session of a period that cost most."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from django.db.models.lookups import LessThan

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import sessions_inside
from sessions.models.dashboard.slices import Split
from sessions.models.record.sessions import Session
from sessions.models.web.happened import StatementIn, ended
from sessions.models.web.periods import Period


def costliest_session(team: Team, period: Period, split: Split) -> Session | None:
    """Find it among the sessions of a split; None if none has a cost."""
    found = _of(tuple(split.chosen)).rows(
        [(period.since, period.until)], team=team.pk, **split.chosen
    )
    return found[0] if found else None


MOST = 1_000
"""Most sessions that one is compared with, the newest."""


class Spent(NamedTuple):
    """What a session, or several, used: `cost` in micro-dollars, and reported tokens."""

    sessions: int
    cost: int
    steps: int
    uncached: int
    read: int
    write: int
    output: int

    @property
    def prompt(self) -> int:
        """Prompt tokens."""
        return self.uncached + self.read + self.write


def spent(session: Session) -> Spent:
    """What a session used."""
    return Spent(1, session.cost_microusd or 0, *(getattr(session, name) for name in _USED))


def spent_by_others(team: Team, period: Period, split: Split, but: Session) -> Spent:
    """What the newest other sessions with a cost used, of a split in a period."""
    rows = _costs(tuple(split.chosen)).rows(
        [(period.since, period.until)], team=team.pk, **split.chosen
    )
    others = [row[1:] for row in rows if row[0] != but.pk]
    return Spent(len(others), *map(sum, zip(*others, strict=True))) if others else UNSPENT


UNSPENT = Spent(0, 0, 0, 0, 0, 0, 0)
_USED = (
    *("step_count", "uncached_tokens", "cache_read_tokens"),
    *("cache_write_tokens", "output_tokens"),
)


@cache
def _costs(chosen: tuple[str, ...]) -> StatementIn:
    return StatementIn(
        lambda times: (
            sessions_inside(times, chosen)
            # Where the index that gives the order begins; no session that is wanted is after it.
            .filter(LessThan(ended(), times[-1][1]))
            .filter(cost_microusd__isnull=False, uncached_tokens__isnull=False)
            .order_by(ended().desc(), "pk")
            .values_list("pk", "cost_microusd", *_USED)[: MOST + 1]
        )
    )


@cache
def _of(chosen: tuple[str, ...]) -> StatementIn:
    return StatementIn(
        lambda times: (
            sessions_inside(times, chosen)
            .filter(cost_microusd__isnull=False)
            .only(
                *("title", "external_id", "model", *_USED),
                *("cost_microusd", "cost_at_least", "usage_calls"),
            )
            .order_by("-cost_microusd", "pk")[:1]
        )
    )
