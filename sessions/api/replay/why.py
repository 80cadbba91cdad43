"""Why a text was forgotten, as JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from compaction.losses.life import Shown, Sight
from compaction.losses.loss_cost import LossCost
from sessions.access import run_of, session_of
from sessions.actions.replay.kept_texts import compared
from sessions.actions.replay.why import LONGEST, Cause, TooCommon, TooLong, Why, why
from sessions.actions.reviews.losses import loss_sentence
from sessions.actions.web.apart import FailedApart
from sessions.api.replay.replay import RUN
from sessions.api.web.problems import Refusal

router = Router(tags=["Replay"])


class StayOut(Schema):
    """Steps [since, until) with one state; `revisions` ended them."""

    since: int
    until: int
    state: Shown
    revisions: list[int]


class SightOut(Schema):
    """A block that holds the text: the step that made or first saw it, and how the text stood
    before."""

    step: int
    entry: str
    type: str
    tool: str | None
    file: str | None
    before: Shown


class CostOut(Schema):
    """Calls made because the text was missing, each once, without what their cache breaks cost and
    what came again: `cost_microusd` is of reported usage, null if unknown, a lower bound if
    `at_least`."""

    why: Cause
    steps: list[int]
    cost_microusd: int | None
    at_least: bool


class CameAgainOut(Schema):
    """The results of these calls: their tokens, counted here, and what the prompts of the `calls`
    other model calls that held them paid for them, first as written to the cache or sent uncached,
    then as read from the cache: estimated."""

    tokens: int
    calls: int
    cost_microusd: int


class TriesOut(Schema):
    """Calls before the first of `costs` that look like tries without the text: `guesses` failed
    with another value, `searches` looked for it, `between` are steps between two of them.
    `cost_microusd` is estimated and no part of the cost of the loss."""

    guesses: list[int]
    searches: list[int]
    between: list[int]
    cost_microusd: int | None
    at_least: bool
    sentence: str


class KeptOut(Schema):
    """The text under one policy, simulated: how it stands at the steps that needed it."""

    policy: str
    stays: list[StayOut]
    at: list[Shown]
    cost_microusd: int | None
    in_context: float


class WhyOut(Schema):
    """The life of a text in a run. `removed` and `needed` are null if it never left, or was not
    needed after it left. `cost_microusd` is the sum of `costs` and `came_again`
    (null if nothing did), as `loss` says in a sentence (empty if unknown). No part of it: `tries`
    (null without any), and `cache_break_microusd`, of what removed the text (measured, or simulated
    with the run; null if unknown)."""

    text: str
    run: str
    sentence: str
    seen: list[SightOut]
    used: list[SightOut]
    stays: list[StayOut]
    removed: dict[str, Any] | None
    needed: SightOut | None
    costs: list[CostOut]
    came_again: CameAgainOut | None
    loss: str
    cost_microusd: int | None
    at_least: bool
    tries: TriesOut | None
    cache_break_microusd: int | None
    policies: list[KeptOut] | None


def _sight(one: Sight) -> dict[str, Any]:
    block = one.block
    return {
        "step": one.step,
        "entry": block.id.removeprefix("m").removesuffix(".0"),
        "type": block.type,
        "tool": block.tool,
        "file": block.file.path if block.file is not None else None,
        "before": one.before,
    }


def described(found: Why) -> dict[str, Any]:
    """A life as JSON, without policies."""
    life, revision = found.life, found.revision
    left, needed = life.left, life.needed
    return {
        "text": life.text,
        "run": str(found.run.policy_version or found.run.origin),
        "sentence": found.sentence,
        "seen": [_sight(one) for one in life.seen],
        "used": [_sight(one) for one in life.used],
        "stays": life.stays,
        "removed": None
        if left is None
        else {
            "step": left.until,
            "by": found.by or None,
            "revision": revision.number if revision is not None else None,
        },
        "needed": _sight(needed) if needed is not None else None,
        "costs": [
            {
                "why": one.why,
                "steps": one.loss.steps,
                "cost_microusd": one.loss.calls,
                "at_least": one.loss.at_least,
            }
            for one in found.costs
        ],
        "came_again": _came_again(found.loss),
        "loss": loss_sentence(found.loss) if found.costs else "",
        "cost_microusd": found.loss.microusd,
        "at_least": found.loss.at_least,
        "tries": _tries(found),
        "cache_break_microusd": revision.cost_microusd if revision is not None else None,
        "policies": None,
    }


def _came_again(loss: LossCost) -> dict[str, int] | None:
    if not loss.carriers:
        return None
    return {"tokens": loss.tokens, "calls": loss.carriers, "cost_microusd": loss.carried}


def _tries(found: Why) -> dict[str, Any] | None:
    tried = found.tried
    tries, cost = tried.tries, tried.cost
    if not tries.steps:
        return None
    return {
        "guesses": tries.guesses,
        "searches": tries.searches,
        "between": tries.between,
        "cost_microusd": cost.microusd,
        "at_least": cost.at_least,
        "sentence": tried.sentence,
    }


def kept_rows(found: Why) -> list[dict[str, Any]]:
    """What policies would have done to the text; none if the model never saw it. Raises TooLong,
    NotInTime, FailedApart."""
    if not found.life.seen:
        return []
    return [
        {
            "policy": row.policy,
            "stays": row.stays,
            "at": row.at,
            "cost_microusd": row.cost,
            "in_context": row.in_context,
        }
        for row in compared(found.session, found.life.text, found.needs)
    ]


@router.get("sessions/{path:session_id}/why", response=WhyOut, url_name="why")
def why_forgotten(
    request: HttpRequest,
    session_id: str,
    text: str = Query("", max_length=LONGEST, description="what was forgotten"),
    run: str = Query("recorded", description=RUN),
    step: int | None = Query(
        None, ge=1, description="a step that needed it; without one, the first that did"
    ),
    policies: bool = Query(False, description="simulate policies on the session as well"),
) -> dict[str, Any]:
    """Find why a text left the context: where the model first saw it, what removed it, when
    it was needed, and the cost."""
    session = session_of(request, session_id)
    if not text:
        raise Refusal(422, "No text", "Name the text that was forgotten.", field="?text")
    if step is not None and step > session.step_count:
        detail = f"The session has steps 1 to {session.step_count}."
        raise Refusal(422, "No such step", detail, field="?step")
    try:
        found = why(session, run_of(request, session), text, step)
        answer = described(found)
        if policies:
            answer["policies"] = kept_rows(found)
    except TooCommon as error:
        raise Refusal(422, "Too common", str(error), field="?text") from None
    except TooLong as error:
        field = "?policies" if policies else "?text"
        raise Refusal(422, "Too long", str(error), field=field) from None
    except FailedApart:
        detail = "The simulation failed. Ask without policies, or simulate one in the lab."
        raise Refusal(500, "Simulation failed", detail, field="?policies") from None
    return answer
