"""What a team's sessions of a range come to: every number of the dashboard, as data."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema

from sessions.actions.agreement import Agreement, reviewed
from sessions.api.access import team_of
from sessions.api.answers import told
from sessions.api.problems import Refusal
from sessions.models import Session
from sessions.models.dashboards import Dashboard, Mark, Number, dashboard, extent
from sessions.models.periods import BadPeriod, Period, asked_for, month_of
from sessions.models.sums import Tile
from sessions.models.tiles import TILES
from sessions.models.troubles import Cause, breaks, nearest_limit, review_items

router = Router(tags=["Dashboard"])


class NumberTold(Schema):
    """A number of a tile: of the range, of the time before it, and of each of its parts; null where
    nothing tells. `unit` is microusd, tokens, share (0..1), count, or mean (per session);
    `at_least`: the value is a lower bound, as that of some sessions is."""

    name: str
    label: str
    unit: Literal["microusd", "tokens", "share", "count", "mean"]
    value: float | None
    at_least: bool
    before: float | None
    values: list[float | None]


class LeftOut(Schema):
    """Sessions that a tile leaves out, or counts in part, and why."""

    sessions: int
    why: str


class TileTold(Schema):
    """A figure with those beside it, the headline first: how it comes about, how it is known, and
    how many sessions it counts; `none` says why the headline is null. The pages' list shows these
    sessions at `?counted=<name>`."""

    name: str
    title: str
    how: str
    basis: Literal["measured", "estimated"]
    counted: int
    none: str | None
    left_out: list[LeftOut]
    numbers: list[NumberTold]


class MarkTold(Schema):
    """A change of what new sessions begin with."""

    at: str
    action: str
    version: str
    share: int | None
    rollout: str | None


class CauseTold(Schema):
    """Why cached tokens were paid again: whether somebody can avoid it (null where the cause is
    not known), in how many sessions, and the dearest break."""

    cause: str
    avoidable: bool | None
    breaks: int
    tokens: int
    cost_microusd: int | None
    sessions: int
    dearest: dict[str, str | int] | None


class NearTold(Schema):
    """A session that came near its limit; `share` is of the window."""

    id: str
    external_id: str
    share: float
    peak_tokens: int
    window: int


class AgreementTold(Schema):
    """How far two reviewers agree on verdicts: Krippendorff's alpha, null with fewer than five
    double reviews, or where everybody always said the same."""

    doubles: int
    alpha: float | None


class DashboardTold(Schema):
    """What the sessions of a range come to. `parts` are where each hour, day or stretch of days
    begins; `before` is what `before` of the numbers is of."""

    range: str
    since: str
    until: str
    before: dict[str, str] | None
    parts: list[str]
    sessions: int
    sub_agents: int
    tiles: list[TileTold]
    forecast_microusd: int | None
    agreement: AgreementTold
    marks: list[MarkTold]
    causes: list[CauseTold]
    causes_of_sessions: int
    nearest_limit: list[NearTold]


@router.get("dashboard", response=DashboardTold, url_name="dashboard")
def get_dashboard(
    request: HttpRequest,
    range_: str = Query("", alias="range", description="24h, 7d, 30d or all; 7d without any"),
    from_: str = Query("", alias="from", description="a day, as 2026-11-01, instead of a range"),
    to: str = Query("", description="the last day, included"),
) -> HttpResponse:
    """Adds up the sessions whose last step lies in a range; all times are UTC."""
    team = team_of(request)
    now = int(timezone.now().timestamp() * 1000)
    month, left_days = month_of(now)
    there = extent(team, month)
    asked = {"range": range_, "from": from_, "to": to}
    try:
        period = asked_for(asked, now, there.first, there.last)
    except BadPeriod as error:
        raise Refusal(422, "No such range", str(error), field=f"?{error.field}") from None
    made = dashboard(team, period)
    found = breaks(team, period)
    return told(
        {
            **_period(period),
            "sessions": made.whole.of["sessions"],
            "sub_agents": made.whole.of["sub_agents"],
            "tiles": [_tile(made, tile) for tile in TILES],
            "forecast_microusd": made.forecast(there.spent, now, left_days),
            "agreement": _agreement(reviewed(review_items(team, period)).agreement),
            "marks": [_mark(mark) for mark in made.marks],
            "causes": [_cause(cause) for cause in found.causes],
            "causes_of_sessions": found.looked_at,
            "nearest_limit": [_near(session) for session in nearest_limit(team, period)],
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


def _cause(cause: Cause) -> dict[str, Any]:
    dearest = cause.dearest and {"session": str(cause.dearest[0].pk), "step": cause.dearest[1]}
    return {
        "cause": cause.kind,
        "avoidable": None if cause.kind == "unexplained" else cause.avoidable,
        "breaks": cause.breaks,
        "tokens": cause.tokens,
        "cost_microusd": cause.cost,
        "sessions": len(cause.sessions),
        "dearest": dearest,
    }


def _near(session: Session) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "external_id": session.external_id,
        "share": session.peak_share,
        "peak_tokens": session.peak_tokens,
        "window": session.window,
    }
