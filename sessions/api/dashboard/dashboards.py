"""The dashboard as data: all numbers of a team's sessions in a range."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema

from sessions.access import team_of
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.reviews.agreement import Agreement, agreement_in
from sessions.api.web.exchange import json_answer
from sessions.api.web.problems import Refusal
from sessions.api.web.shapes import StorableText
from sessions.models import Session
from sessions.models.cache.causes import CauseSums, causes_in
from sessions.models.dashboard.dashboards import Dashboard, Mark, Number, dashboard, extent
from sessions.models.dashboard.slices import Split
from sessions.models.dashboard.tiles import TILES
from sessions.models.dashboard.troubles import WorstBreak, nearest_limit, worst_of_causes
from sessions.models.web.periods import BadPeriod, Period, asked_for, month_of
from sessions.models.web.sums import Tile

router = Router(tags=["Dashboard"])


class NumberOut(Schema):
    """A number of a tile: for the range, for the period before, and for each part; null if unknown.
    `unit` is microusd, tokens, share (0..1), count, or mean (per session); `at_least` marks a lower
    bound."""

    name: str
    label: str
    unit: Literal["microusd", "tokens", "share", "count", "mean"]
    value: float | None
    at_least: bool
    before: float | None
    values: list[float | None]


class LeftOut(Schema):
    """Sessions that a tile excludes or counts only in part, and why."""

    sessions: int
    why: str


class TileOut(Schema):
    """A figure and its related figures, headline first: definition, basis, and number of sessions
    counted; `none` says why the headline is null. The session list shows these sessions at
    `?counted=<name>`."""

    name: str
    title: str
    how: str
    basis: Literal["measured", "estimated"]
    counted: int
    none: str | None
    left_out: list[LeftOut]
    numbers: list[NumberOut]


class MarkOut(Schema):
    """A change of the policy for new sessions."""

    at: str
    action: str
    version: str
    share: int | None
    rollout: str | None


class CauseOut(Schema):
    """A cause of cache breaks in all sessions of the range: whether it is avoidable (null if
    unknown), the number of sessions, and what it cost (`at_least` if only some of them have a
    cost). `ttl` may be listed twice: its avoidable breaks, and the others. `costliest` is the most
    expensive break of the 200 sessions that paid most for breaks."""

    cause: str
    avoidable: bool | None
    breaks: int
    tokens: int
    cost_microusd: int | None
    at_least: bool
    sessions: int
    costliest: dict[str, str | int] | None


class NearOut(Schema):
    """A session that came near its limit; `share` is of the window."""

    id: str
    external_id: str
    share: float
    peak_tokens: int
    window: int


class AgreementOut(Schema):
    """Agreement of two reviewers on verdicts: Krippendorff's alpha, null with fewer than five
    double reviews or if all verdicts are equal."""

    doubles: int
    alpha: float | None


class DashboardOut(Schema):
    """The dashboard of a range. `parts` are the start times of each part; `before` is the period
    the `before` numbers refer to. `unsplit` sessions of the range are left out of a split: their
    agent, model and policy are among the rarest of their day. A split has no `nearest_limit`."""

    range: str
    since: str
    until: str
    before: dict[str, str] | None
    parts: list[str]
    sessions: int
    sub_agents: int
    unsplit: int
    tiles: list[TileOut]
    forecast_microusd: int | None
    agreement: AgreementOut
    marks: list[MarkOut]
    causes: list[CauseOut]
    nearest_limit: list[NearOut]


@router.get("dashboard", response=DashboardOut, url_name="dashboard")
def get_dashboard(
    request: HttpRequest,
    range_: str = Query(
        "", alias="range", description="24h, 7d, 30d, today, month, last-month or all; default 7d"
    ),
    from_: str = Query(
        "", alias="from", description="a day such as 2026-11-01, instead of a range"
    ),
    to: str = Query("", description="the last day, inclusive"),
    agent: StorableText = Query("", max_length=200),
    model: StorableText = Query("", max_length=200),
    policy: StorableText = Query(
        "", max_length=200, description="a name, or name@3 for one version"
    ),
) -> HttpResponse:
    """Add up the sessions whose last step is in a range; all times are UTC. With `agent`, `model`
    or `policy`, only theirs."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    month, left_days = month_of(now)
    keep_totals(team)
    there = extent(team, month)
    asked = {"range": range_, "from": from_, "to": to}
    try:
        period = asked_for(asked, now, there.first, there.last)
    except BadPeriod as error:
        raise Refusal(422, "Invalid range", str(error), field=f"?{error.field}") from None
    split = Split(agent, model, policy)
    made = dashboard(team, period, split)
    worst = worst_of_causes(team, period, split)
    return json_answer(
        {
            **_period(period),
            "sessions": made.whole.of["sessions"],
            "sub_agents": made.whole.of["sub_agents"],
            "unsplit": made.whole.of["unsplit"],
            "tiles": [_tile(made, tile) for tile in TILES],
            "forecast_microusd": made.forecast(there.spent, now, left_days),
            "agreement": _agreement(agreement_in(team, period.since, period.until)),
            "marks": [_mark(mark) for mark in made.marks],
            "causes": [_cause(one, worst.get(one.key)) for one in causes_in(made.whole)],
            "nearest_limit": [] if split else [_near(one) for one in nearest_limit(team, period)],
        }
    )


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def _period(period: Period) -> dict[str, Any]:
    before = period.before
    return {
        "range": period.name,
        "since": _time(period.since),
        "until": _time(period.until),
        "before": {"since": _time(before[0]), "until": _time(before[1])} if before else None,
        "parts": [_time(at) for at in period.parts],
    }


def _tile(made: Dashboard, tile: Tile) -> dict[str, Any]:
    return {
        "name": tile.name,
        "title": tile.title,
        "how": tile.how,
        "basis": made.basis(tile),
        "counted": made.whole.of[tile.counted],
        "none": made.none(tile) if tile.columns[0].of(made.whole) is None else None,
        "left_out": [{"sessions": many, "why": why} for many, why in made.missing(tile)],
        "numbers": [_number(number) for number in made.numbers(tile)],
    }


def _number(number: Number) -> dict[str, Any]:
    return {
        "name": number.column.name,
        "label": number.column.label,
        "unit": number.column.unit,
        "value": number.value,
        "at_least": number.at_least,
        "before": number.before,
        "values": list(number.values),
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    return {"doubles": found.doubles, "alpha": found.alphas.get("verdict")}


def _mark(mark: Mark) -> dict[str, Any]:
    return {
        "at": _time(mark.at),
        "action": mark.action,
        "version": mark.named,
        "share": mark.detail.get("share"),
        "rollout": mark.detail.get("rollout"),
    }


def _cause(cause: CauseSums, worst: WorstBreak | None) -> dict[str, Any]:
    return {
        "cause": cause.kind,
        "avoidable": cause.avoidable if cause.known else None,
        "breaks": cause.breaks,
        "tokens": cause.tokens,
        "cost_microusd": cause.microusd,
        "at_least": cause.at_least,
        "sessions": cause.sessions,
        "costliest": worst and {"session": str(worst.session.pk), "step": worst.card["step"]},
    }


def _near(session: Session) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "share": session.peak_share,
        "peak_tokens": session.peak_tokens,
        "window": session.window,
    }
