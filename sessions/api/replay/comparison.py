"""Two sessions compared, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema

from compaction.context.align import AlignedOp
from sessions.access import run_named, session_of
from sessions.actions.replay.comparison_verdicts import comparison_verdict
from sessions.actions.replay.comparisons import (
    ComparedStep,
    Comparison,
    FigureUnit,
    TooManySteps,
    compare,
)
from sessions.actions.replay.run_comparisons import compare_runs
from sessions.api.web.problems import Refusal
from sessions.models import Run, Session

ROWS_AT_ONCE = 500
LAST = 999_999_999

router = Router(tags=["Replay"])


class ComparedRunOut(Schema):
    """One of the two runs of a session; `policy` is null where nothing was managed."""

    id: str
    origin: Literal["recorded", "managed", "simulated"]
    policy: str | None


class ComparedSessionOut(Schema):
    """One of the two sessions; `run` where two runs of one are compared."""

    id: str
    external_id: str
    title: str
    agent: str
    model: str
    policy: str | None
    outcome: str
    run: ComparedRunOut | None


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
    same operation with other arguments (`changed`), or a step of one session. Of two runs: a step
    with the same context (`same`) or another one (`changed`)."""

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


def compared(a: Session, b: Session, run: str = "", with_run: str = "") -> Comparison:
    """Two sessions compared, or two runs of one if a name is given; an empty one is `recorded`.

    Raises Http404 without a run of that name, TooManySteps, MissingBlob, DamagedBlob.
    """
    if a.pk != b.pk or not (run or with_run):
        return compare(a, b)
    return compare_runs(*(run_named(a, name or Run.Origin.RECORDED) for name in (run, with_run)))


def _policy(one: Session | Run) -> str | None:
    return str(one.policy_version) if one.policy_version else None


def _run(run: Run) -> dict[str, Any]:
    return {"id": str(run.pk), "origin": run.origin, "policy": _policy(run)}


def _session(session: Session, run: Run | None) -> dict[str, Any]:
    return {
        "id": str(session.pk),
        "policy": _policy(session),
        "run": _run(run) if run is not None else None,
        **{name: getattr(session, name) for name in ComparedSessionOut.model_fields
           if name not in ("id", "policy", "run")},
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
    run_a, run_b = found.runs or (None, None)
    row = found.rows[parting] if parting is not None else None

    def basis(at: int, estimated: tuple[bool, bool], at_least: tuple[bool, bool]) -> str:
        return "at_least" if at_least[at] else "estimated" if estimated[at] else "measured"

    return {
        "a": _session(found.a, run_a),
        "b": _session(found.b, run_b),
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
    run: str = Query("", description="a run of the session: recorded, managed, a policy, an id"),
    with_run: str = Query("", description="the run to compare that with; default: recorded"),
    after: int = Query(0, ge=0, le=LAST, description="`next` of the previous page"),
    limit: int = Query(100, ge=1, le=ROWS_AT_ONCE),
) -> dict[str, Any]:
    """Compare with another session: figures of both, and their steps aligned by what the model did.

    The session of the path is a, the other one is b. With `run` or `with_run` instead of `with`,
    two runs of the session are compared: `run` is a, `with_run` is b.
    """
    a = session_of(request, session_id)
    of_runs = bool(run or with_run)
    if not other and not of_runs:
        raise Refusal(422, "No session", "Name the session to compare with.", field="?with")
    b = session_of(request, other) if other else a
    if of_runs and a.pk != b.pk:
        text = "Runs are compared within one session. Leave out `with`, or `run` and `with_run`."
        raise Refusal(422, "Two sessions", text, field="?with")
    try:
        return described_comparison(compared(a, b, run, with_run), after, limit)
    except TooManySteps as error:
        raise Refusal(422, "Too many steps", str(error)) from None
