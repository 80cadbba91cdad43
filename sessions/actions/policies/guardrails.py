"""The guardrail of a rollout: figures of both sides, checked against its limits.

The new side are sessions that began with the new version while the rollout was running; the other
side began in the same period with the previous version. Figures are sums over all sessions of a
side (dollars over calls, needs in context over needs), not means of sessions: what the side as a
whole cost and kept. They carry no confidence interval; the guardrail's `sessions` keeps a few early
sessions from deciding.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from django.db.models import Avg, BooleanField, Case, Count, F, Q, Sum, Value, When
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.policies import rollouts
from sessions.actions.policies.bounds import BOUNDS, SESSIONS, Bound
from sessions.actions.policies.guardrail_findings import Figure, Findings, LimitState, Side, reason
from sessions.models import Assessment, FactLedger, Review, Rollout, Session, Team
from sessions.models.policies.rollouts import under_way

FAILED = "failed"


NOTHING = Figure(None, 0)


# Figures


def findings_of(rollout: Rollout) -> Findings:
    """Compute the figures of both sides as of now; writes nothing. Four queries."""
    rows = _sums(rollout)
    sides = {row["new"]: row for row in rows}
    figures = {
        "cost": _costs(rows),
        "outcomes": {row["new"]: _share(row["failed"], row["ended"], row["ended"]) for row in rows},
        "recall": _recall(rollout),
        "ledger": _ledger(rollout),
        "reviews": _reviews(rollout),
    }
    return Findings(
        _side(sides.get(True)),
        _side(sides.get(False)),
        tuple(_finding(bound, rollout, figures[bound.name]) for bound in BOUNDS.values()),
    )


Sides = dict[bool, Figure]


def _new(rollout: Rollout, session: str = "") -> Case:
    """Whether a row's session is on the new side."""
    column = f"{session}policy_version"
    return Case(
        When(Q(**{column: rollout.version_id}), then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )


def _sums(rollout: Rollout) -> list[dict[str, Any]]:
    # If a log understates outputs, its cost is only a lower bound: exclude it.
    priced = Q(usage_calls__gt=0, cost_microusd__isnull=False, cost_at_least=False)
    rows = (
        Session.objects.filter(rollout=rollout)
        .values(new=_new(rollout))
        .annotate(
            sessions=Count("pk"),
            steps=Sum("step_count"),
            errors=Sum("error_count"),
            paid=Sum("cost_microusd", filter=priced),
            priced_calls=Sum("usage_calls", filter=priced),
            priced=Count("pk", filter=priced),
            ended=Count("pk", filter=~Q(outcome="")),
            failed=Count("pk", filter=Q(outcome=FAILED)),
        )
        .order_by()
    )
    return [dict(row) for row in rows]


def _side(row: Mapping[str, Any] | None) -> Side:
    if row is None:
        return Side()
    return Side(**{name: row[name] for name in Side.__dataclass_fields__})


def _costs(rows: list[dict[str, Any]]) -> Sides:
    return {row["new"]: _share(row["paid"], row["priced_calls"], row["priced"]) for row in rows}


def _share(part: float | None, whole: float | None, sessions: int) -> Figure:
    return Figure(part / whole, sessions) if part is not None and whole else NOTHING


def _recall(rollout: Rollout) -> Sides:
    rows = (
        # Of sessions without a policy, only those that lost a text have recall.
        Assessment.objects.filter(session__rollout=rollout, needs__gt=0)
        .exclude(session__policy_version=None)
        .values(new=_new(rollout, "session__"))
        .annotate(n=Count("pk"), all=Sum("needs"), part=Sum("in_context"))
        .order_by()
    )
    return {row["new"]: _share(row["part"], row["all"], row["n"]) for row in rows}


def _ledger(rollout: Rollout) -> Sides:
    run = "revision__run__"
    rows = (
        FactLedger.objects.filter(
            **{f"{run}session__rollout": rollout, f"{run}origin": "managed"}, score__isnull=False
        )
        .values(new=_new(rollout, f"{run}session__"))
        .annotate(n=Count(F(f"{run}session"), distinct=True), mean=Avg("score"))
        .order_by()
    )
    return {row["new"]: Figure(row["mean"] / 1000, row["n"]) for row in rows}


def _reviews(rollout: Rollout) -> Sides:
    session = "item__revision__run__session"
    rows = (
        # Excludes unfinished items: one of two blind reviewers must not learn the other's verdict.
        Review.objects.filter(
            submitted__isnull=False,
            item__finished__isnull=False,
            **{f"{session}__rollout": rollout},
        )
        .values(new=_new(rollout, f"{session}__"))
        .annotate(
            n=Count(F(session), distinct=True),
            all=Count("pk"),
            part=Count("pk", filter=Q(verdict=Review.Verdict.FAIL)),
        )
        .order_by()
    )
    return {row["new"]: _share(row["part"], row["all"], row["n"]) for row in rows}


# Judging


def _finding(bound: Bound, rollout: Rollout, figures: Sides) -> LimitState:
    new, other = figures.get(True, NOTHING), figures.get(False, NOTHING)
    percent = rollout.guardrail.get(bound.name)
    needed = rollout.guardrail.get("sessions") or SESSIONS
    return LimitState(
        name=bound.name,
        state=judged(bound, percent, new, other, needed),
        value=new.value,
        other=other.value,
        n=new.sessions,
        n_other=other.sessions,
        needed=needed,
        bound=percent,
        basis=bound.basis,
    )


def judged(
    bound: Bound, percent: int | None, new: Figure, other: Figure, needed: int
) -> Literal["ok", "broken", "few", "off"]:
    """Check a figure of the new side against a limit; reaching the limit is still ok."""
    if percent is None:
        return "off"
    sides = (new, other) if bound.compares else (new,)
    if any(side.value is None or side.sessions < needed for side in sides):
        return "few"
    assert new.value is not None
    share = percent / 100
    if bound.kind == "least":
        holds = new.value >= share
    elif bound.kind == "most":
        holds = new.value <= share
    elif bound.kind == "costlier":
        holds = not other.value or new.value <= other.value * (1 + share) + _ROUNDING
    else:
        holds = new.value - (other.value or 0) <= share + _ROUNDING
    return "ok" if holds else "broken"


_ROUNDING = 1e-9
"""Tolerance for binary rounding in a sum that is exactly at its limit."""


# Acting


def check(rollout: Rollout) -> Findings:
    """Compute the findings, store them, and pause the rollout if a limit is exceeded.

    Of several concurrent checks only one pauses it. A rollout that is not in progress is not
    changed.
    """
    found = findings_of(rollout)
    if rollout.state not in Rollout.UNDER_WAY:
        return found
    kept = found.stored()
    at = timezone.now()
    rows = Rollout.objects.filter(pk=rollout.pk, state__in=Rollout.UNDER_WAY)
    if {**rollout.found, "at": ""} == {**kept, "at": ""}:
        rows.update(found={**kept, "at": at.isoformat()})
    else:  # open pages watch `changed`
        rows.update(found={**kept, "at": at.isoformat()}, changed=at)
    if found.broken and rollout.state == Rollout.State.RUNNING:
        with suppress(rollouts.CannotRollOut):  # lost a race, or the rollout ended
            rollouts.pause(rollout, audit.GUARDRAIL, "; ".join(map(reason, found.broken)))
    return found


def check_team(team: Team) -> None:
    """Check the team's running rollout, if any."""
    rollout = under_way(team)
    if rollout is not None and rollout.state == Rollout.State.RUNNING:
        check(rollout)
