"""Two sessions compared, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema

from compaction.context.align import AlignedOp
from sessions.access import session_of
from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import (
    ComparedStep,
    Comparison,
    FigureUnit,
    TooManySteps,
    compare,
)
from sessions.api.web.problems import Refusal

ROWS_AT_ONCE = 500
LAST = 999_999_999

router = Router(tags=["Replay"])


class ComparedSessionOut(Schema):
    """One of the two sessions."""

    id: str
    external_id: str
    title: str
    agent: str
    model: str
    policy: str | None
    outcome: str


class ComparedFigureOut(Schema):
    """A figure of both sessions, null if unknown; `change` is the share by which b differs from a.
    Micro-dollars, tokens, shares from 0 to 1, counts, or milliseconds, by `unit`."""

    name: str
    unit: FigureUnit
    a: float | None
    b: float | None
    change: float | None
    basis_a: Literal["measured", "estimated", "at_least"]
    basis_b: Literal["measured", "estimated", "at_least"]


class ComparedStepOut(Schema):
    """What the model did at a step, in one line; prompt (tokens) and cost as reported, else
    null."""

    step: int
    what: str
    failed: bool
    prompt_tokens: int | None
    cost_microusd: int | None


class AlignedRowOut(Schema):
    """Steps that answer each other: the same calls, other words without calls (`reworded`), the
    same operation with other arguments (`changed`), or a step of one session."""

    op: AlignedOp
    a: ComparedStepOut | None
    b: ComparedStepOut | None


class PartingOut(Schema):
    """The first row with other calls, and its steps."""

    row: int
    a: int | None
    b: int | None


class ComparisonOut(Schema):
    """Two sessions; `next` is the `after` of the next page of rows, null on the last."""

    a: ComparedSessionOut
    b: ComparedSessionOut
    same_task: bool
    sentence: str
    parting: PartingOut | None
    figures: list[ComparedFigureOut]
    counts: dict[AlignedOp, int]
    rows: list[AlignedRowOut]
    next: int | None


def _session(session: Any) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "policy": str(session.policy_version) if session.policy_version else None,
        **{name: getattr(session, name) for name in ComparedSessionOut.model_fields
           if name not in ("id", "policy")},
    }  # fmt: skip


def _step(steps: Mapping[int, ComparedStep], step: int | None) -> dict[str, Any] | None:
    found = steps.get(step) if step is not None else None
    if found is None:
        return None
    return {
        "step": found.step,
        "what": found.what,
        "failed": found.failed,
        "prompt_tokens": found.prompt,
        "cost_microusd": found.cost,
    }


def described_comparison(found: Comparison, after: int = 0, limit: int = LAST) -> dict[str, Any]:
    """A comparison as JSON, with `limit` rows from place `after` on."""
    end = min(after + limit, len(found.rows))
    parting = found.parting
    row = found.rows[parting] if parting is not None else None

    def basis(at: int, estimated: tuple[bool, bool], at_least: tuple[bool, bool]) -> str:
        return "at_least" if at_least[at] else "estimated" if estimated[at] else "measured"

    return {
        "a": _session(found.a),
        "b": _session(found.b),
        "same_task": found.same_task,
        "sentence": comparison_verdict(found).sentence,
        "parting": row and {"row": parting, "a": row.a, "b": row.b},
        "figures": [
            {
                "name": one.name,
                "unit": one.unit,
                "a": one.a,
                "b": one.b,
                "change": one.change,
                "basis_a": basis(0, one.estimated, one.at_least),
                "basis_b": basis(1, one.estimated, one.at_least),
            }
            for one in found.figures
        ],
        "counts": found.counts,
        "rows": [
            {"op": one.op, "a": _step(found.steps_a, one.a), "b": _step(found.steps_b, one.b)}
            for one in found.rows[after:end]
        ],
        "next": end if end < len(found.rows) else None,
    }


@router.get("sessions/{path:session_id}/compare", response=ComparisonOut, url_name="compare")
def compare_sessions(
    request: HttpRequest,
    session_id: str,
    other: str = Query("", alias="with", description="id of the other session"),
    after: int = Query(0, ge=0, le=LAST, description="`next` of the previous page"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
) -> dict[str, Any]:
    """Compare with another session: figures of both, and their steps aligned by what the model did.

    The session of the path is a, the other one is b.
    """
    a = session_of(request, session_id)
    if not other:
        raise Refusal(422, "No session", "Name the session to compare with.", field="?with")
    b = session_of(request, other)
    try:
        return described_comparison(compare(a, b), after, limit)
    except TooManySteps as error:
        raise Refusal(422, "Too many steps", str(error)) from None
