"""The latest compaction of a period that lost facts that were needed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.record.demo_data import counts
from sessions.models.record.revisions import Run
from sessions.models.reviews.assessments import FactLedger
from sessions.models.web.periods import Period, StatementIn, happened_in
from sessions.models.web.statements import Given, given_uuid

_SESSION = "revision__run__session"


@dataclass(frozen=True, slots=True)
class LatestLoss:
    """A compaction by the agent itself: its session and number."""

    session: UUID
    number: int
    title: str


def latest_loss(team: Team, period: Period) -> LatestLoss | None:
    """Find it among sessions without a policy, newest first."""
    rows = _LATEST.rows([(period.since, period.until)], team=team.pk)
    return LatestLoss(*rows[0]) if rows else None


def _latest(times: Sequence[tuple[Given, Given]]) -> QuerySet[Any, Any]:
    team = given_uuid("team")
    wanted = {
        f"{_SESSION}__team_id": team,
        f"{_SESSION}__policy_version": None,
        f"{_SESSION}__assessment__lost__gt": 0,
        "revision__run__origin": Run.Origin.RECORDED,
        "lost__gt": 0,
    }
    rows = FactLedger.objects.filter(
        happened_in(times, f"{_SESSION}__"), counts(team, f"{_SESSION}__"), **wanted
    )
    ordered = rows.order_by(f"-{_SESSION}__ended_at", "revision__number")
    return ordered.values_list(_SESSION, "revision__number", f"{_SESSION}__title")[:1]


_LATEST = StatementIn(_latest)
