"""What comes next in a live session."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema

from compaction.simulation.at_risk import After, Leaving
from sessions.access import session_of
from sessions.actions.live.forecasts import NothingToForecast, facts_at_risk, forecast
from sessions.actions.web.apart import FailedApart
from sessions.api.web.problems import Refusal

router = Router(tags=["Context"])


class LimitOut(Schema):
    """The context reaches `limit` tokens in about `steps` calls, growing by `growth` tokens per
    call over the last `observed` steps; estimated."""

    at: Literal["policy", "window"]
    steps: int
    growth: int
    limit: int
    observed: int


class RateOut(Schema):
    """Tokens (prompt and output) and micro-dollars per minute over the `calls` of the last `ms`, as
    reported; micro-dollars are null if a price is unknown. Null for sessions of under a minute."""

    tokens: float
    microusd: float | None
    calls: int
    ms: int


class FactAtRiskOut(Schema):
    """A fact that would leave: the last step whose tool input had it (0 for none), the entry and
    step that last showed it, about the step from which it is gone, and how it could be had
    afterwards."""

    fact: str
    used: int
    entry: str
    step: int
    leaves: int
    after: After


class LeavingOut(Schema):
    """Simulated until the limit is reached, if that is within reach, else until the next offload:
    the tokens that edits remove, and how many facts that matter leave the context; `facts` are
    those likeliest to be needed."""

    removed_tokens: int
    count: int
    facts: list[FactAtRiskOut]


class OffloadOut(Schema):
    """The policy offloads in about `steps` calls (0: at the next one) and about every `every`
    calls, null before the first time; estimated from its settings and past revisions."""

    steps: int
    every: int | None


class ForecastOut(Schema):
    """What comes next; null where nothing can be said."""

    sentence: str
    offload: OffloadOut | None
    limit: LimitOut | None
    rate: RateOut | None
    leaving: LeavingOut | None


def _leaving(found: Leaving | None) -> dict[str, Any] | None:
    if found is None:
        return None
    facts = [
        {**asdict(one), "entry": one.block.removeprefix("m").removesuffix(".0")}
        for one in found.facts
    ]
    return {"removed_tokens": found.removed, "count": found.count, "facts": facts}


@router.get("sessions/{path:session_id}/forecast", response=ForecastOut, url_name="forecast")
def forecast_of(
    request: HttpRequest,
    session_id: str,
    facts: bool = Query(False, description="simulate what leaves until then as well"),
) -> dict[str, Any]:
    """Forecast the next offload, the limit of policy or window, and the use per minute.

    With `facts`: the facts that the policy would take out of the context until then.
    """
    session = session_of(request, session_id)
    found = forecast(session)
    leaves = None
    if facts:
        try:
            leaves = _leaving(facts_at_risk(session, found))
        except NothingToForecast as error:
            raise Refusal(422, "Nothing to forecast", str(error), field="?facts") from None
        except FailedApart:
            detail = "The simulation failed. Simulate the policy in the lab."
            raise Refusal(503, "Simulation failed", detail, field="?facts") from None
    return {
        "sentence": found.sentence,
        "offload": asdict(found.offload) if found.offload else None,
        "limit": {"at": found.at, **asdict(found.next)} if found.next else None,
        "rate": asdict(found.rate) if found.rate else None,
        "leaving": leaves,
    }
