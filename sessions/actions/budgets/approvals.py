"""Approvals for calls over budget, and the check before a context is returned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from compaction.budget.spending import AccountState, Amount, judge
from sessions.actions.accounts import audit
from sessions.actions.budgets import spending, uses
from sessions.actions.budgets.reserved import open_reservations, release_expired
from sessions.actions.web.changed import publish
from sessions.models import Approval, Session, Team, Use
from sessions.models.record.demo_data import counts

NOTHING = Amount()


class CannotDecide(ValueError):
    """The approval was already decided."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a context may be returned, in the form of a budget check; `budgets` lists the state
    of each."""

    answer: dict[str, Any] | None
    budgets: tuple[dict[str, Any], ...] = ()


def shown_approvals(team: Team) -> QuerySet[Approval]:
    """Approvals of the team's sessions that count: the demo's only while it is alone."""
    return approvals_of([team]).filter(counts(team.pk, "session__"))


def approvals_of(teams: list[Team]) -> QuerySet[Approval]:
    """Approvals of these teams."""
    rows = Approval.objects.filter(use__budget__team__in=teams)
    return rows.select_related("use__budget__team", "session__team", "decided_by")


def decide(
    approval_id: UUID,
    actor: audit.Actor,
    now: datetime,
    *,
    granted: bool,
    more: Amount = NOTHING,
) -> Approval:
    """Grant or refuse an approval, finally. Granting raises the limit of the use by what the
    waiting call needs, plus `more`. Raises CannotDecide."""
    with transaction.atomic():
        found = Approval.objects.select_related("session", "use").get(pk=approval_id)
        session = Session.objects.select_for_update(of=("self",)).get(pk=found.session_id)
        rows = Use.objects.select_for_update(of=("self",)).select_related("budget__team")
        use = rows.get(pk=found.use_id)
        row = Approval.objects.select_for_update(of=("self",)).get(pk=approval_id)
        if row.state != Approval.State.WAITING:
            raise CannotDecide(f"This approval is already {row.state}.")
        row.state = Approval.State.GRANTED if granted else Approval.State.REFUSED
        row.decided_by, row.decided = actor.user, now
        row.save()
        if granted:
            use.take(use.account.grant(row.amount, more).latched()[0])
            uses.save([use], now)
        detail = {"tokens": row.tokens, "microusd": row.microusd}
        if granted and more != NOTHING:
            detail |= {"more_tokens": more.tokens, "more_microusd": more.microusd}
        audit.note(use.budget.team, actor, f"approval.{row.state}", uses.called(use), **detail)
        publish(session)
    row.session, row.use = session, use
    return row


def admit(session: Session, prompt: int, step: int, now: datetime) -> Admission:
    """Check whether the context of a step may be returned: the budgets have room for its estimated
    call, or the session has reserved it.

    A call that needs approval waits under the id "step-N". Writes nothing if the call is allowed.
    """
    budgets = uses.budgets_for(session)
    if not budgets:
        return Admission(None)
    there = uses.stored(session, budgets, now)
    limits = uses.in_force(budgets)
    limiting = [use for use in there if use.budget_id in limits]
    wanted = spending.PlannedCall()
    estimate = spending.estimate_of(session, wanted, prompt)
    known = {use.budget_id for use in there}
    if limits <= known and judge(_findings(session, limiting, estimate), estimate).can_proceed:
        return Admission(None, tuple(uses.describe_use(use) for use in limiting))
    return _admit(session, wanted, estimate, step, now)


def _findings(
    session: Session, limiting: list[Use], estimate: Amount, call: str = ""
) -> list[AccountState]:
    """The findings of a check, minus what the session has already reserved."""
    opened = open_reservations(session)
    reserved = {id for ids in opened.values_list("uses", flat=True) for id in ids}
    free = [use for use in limiting if use.pk not in reserved]
    return spending.findings(free, estimate, session, call)


def _admit(
    session: Session, wanted: spending.PlannedCall, estimate: Amount, step: int, now: datetime
) -> Admission:
    release_expired(session.team, now)
    call = f"step-{step}"
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        budgets = uses.budgets_for(locked)
        held, _ = uses.locked(locked, budgets, now)
        limits = uses.in_force(budgets)
        limiting = [use for use in held if use.budget_id in limits]
        findings = _findings(locked, limiting, estimate, call)
        verdict = judge(findings, estimate)
        states = tuple(uses.describe_use(use) for use in limiting)
        if verdict.can_proceed:
            return Admission(None, states)
        approval = None
        if verdict.require_approval:
            approval = spending.ask(limiting, findings, locked, call, estimate)
        answer = spending.answer_to(verdict, estimate, wanted, limiting, (), approval)
        publish(locked)
    return Admission(answer, states)
