"""Approvals: calls that wait for a person's yes, and contexts that are not handed out meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from compaction.spending import Amount, Finding, judge
from sessions.actions import audit, spending, uses
from sessions.actions.folds import tell
from sessions.actions.reserved import open_reservations, release_expired
from sessions.models import Approval, Session, Team, Use

NOTHING = Amount()


class CannotDecide(ValueError):
    """Somebody else decided before."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a context is handed out, as a check answers; `budgets` says how each stands."""

    answer: dict[str, Any] | None
    budgets: tuple[dict[str, Any], ...] = ()


def approvals_of(teams: list[Team]) -> QuerySet[Approval]:
    """What was asked in these teams."""
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
    """Say yes or no for good. A yes lets the use go as far beyond its limit as the call needs that
    asked, and `more`. Raises CannotDecide."""
    with transaction.atomic():
        found = Approval.objects.select_related("session", "use").get(pk=approval_id)
        session = Session.objects.select_for_update(of=("self",)).get(pk=found.session_id)
        rows = Use.objects.select_for_update(of=("self",)).select_related("budget__team")
        use = rows.get(pk=found.use_id)
        row = Approval.objects.select_for_update(of=("self",)).get(pk=approval_id)
        if row.state != Approval.State.WAITING:
            raise CannotDecide(f"It is {row.state} already.")
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
        tell(session)
    row.session, row.use = session, use
    return row


def admit(session: Session, prompt: int, step: int, now: datetime) -> Admission:
    """Whether the context of a step may be handed out: the budgets leave room for the call that it
    is for, estimated as a check does, or a reservation of the session holds it.

    One that asks for a person waits under the call id "step-N". Writes nothing where all is well.
    """
    budgets = uses.budgets_for(session)
    if not budgets:
        return Admission(None)
    there = uses.stored(session, budgets, now)
    limits = uses.in_force(budgets)
    limiting = [use for use in there if use.budget_id in limits]
    wanted = spending.Wanted()
    estimate = spending.estimate_of(session, wanted, prompt)
    known = {use.budget_id for use in there}
    if limits <= known and judge(_findings(session, limiting, estimate), estimate).can_proceed:
        return Admission(None, tuple(uses.told(use) for use in limiting))
    return _admit(session, wanted, estimate, step, now)


def _findings(
    session: Session, limiting: list[Use], estimate: Amount, call: str = ""
) -> list[Finding]:
    """As for a check, but for what the session has reserved: that is counted already."""
    opened = open_reservations(session)
    reserved = {id for ids in opened.values_list("uses", flat=True) for id in ids}
    free = [use for use in limiting if use.pk not in reserved]
    return spending.findings(free, estimate, session, call)


def _admit(
    session: Session, wanted: spending.Wanted, estimate: Amount, step: int, now: datetime
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
        budgets_told = tuple(uses.told(use) for use in limiting)
        if verdict.can_proceed:
            return Admission(None, budgets_told)
        approval = None
        if verdict.require_approval:
            approval = spending.ask(limiting, findings, locked, call, estimate)
        answer = spending.answer_to(verdict, estimate, wanted, limiting, (), approval)
        tell(locked)
    return Admission(answer, budgets_told)
