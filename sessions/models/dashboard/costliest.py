"""The session of a period that cost most."""

from __future__ import annotations

from functools import cache

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import sessions_inside
from sessions.models.dashboard.slices import Split
from sessions.models.record.sessions import Session
from sessions.models.web.happened import StatementIn
from sessions.models.web.periods import Period


def costliest_session(team: Team, period: Period, split: Split) -> Session | None:
    """Find it among the sessions of a split; None if none has a cost."""
    found = _of(tuple(split.chosen)).rows(
        [(period.since, period.until)], team=team.pk, **split.chosen
    )
    return found[0] if found else None


@cache
def _of(chosen: tuple[str, ...]) -> StatementIn:
    return StatementIn(
        lambda times: (
            sessions_inside(times, chosen)
            .filter(cost_microusd__isnull=False)
            .only("title", "external_id", "cost_microusd", "step_count", "model")
            .order_by("-cost_microusd", "pk")[:1]
        )
    )
