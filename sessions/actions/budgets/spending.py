"""Spending of live agents: checked and reserved before a call, settled by reported usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from compaction.budget.spending import AccountState, Amount, Verdict, judge
from compaction.context.session import Usage
from compaction.prices import prices
from sessions.actions.budgets import uses
from sessions.actions.budgets.reserved import end, expired, open_reservations, settled_by
from sessions.actions.web.changed import publish
from sessions.figures import percent
from sessions.models import Approval, Budget, ModelCall, Reservation, Session, Use
from sessions.models.record.model_calls import usage_of
from sessions.signals import budget_passed

HELD = timedelta(minutes=10)
"""Default duration of a reservation: longer than a model call takes (our choice)."""

EXPECTED_OUTPUT = 1_000
"""Output tokens assumed for the first call of a session (our choice)."""

RECENT = 20
"""Number of recent calls whose output and cost predict the next one."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A planned call. `call` is the agent's own id for it; without one nothing is reserved.

    Missing values are estimated. The reservation expires after `held`.
    """

    call: str = ""
    tokens: int | None = None
    microusd: int | None = None
    held: timedelta = HELD


@dataclass(frozen=True, slots=True)
class Settled:
    """The state of a session's budgets after a report, and new warnings."""

    budgets: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def delay_ms(self) -> int:
        """The longest recommended delay."""
        return max((one["delay_ms"] for one in self.budgets), default=0)


def estimate_of(session: Session, wanted: PlannedCall, prompt: int) -> Amount:
    """Estimate what a call will spend: as given, else its prompt plus the mean output of recent
    calls.

    Cost is based on the cost per token of recent calls, else on list prices without cache; 0 if no
    price is known.
    """
    rows = session.calls.exclude(uncached=None).order_by("-step")
    recent = [(call, usage) for call in rows[:RECENT] if (usage := usage_of(call)) is not None]
    output = EXPECTED_OUTPUT
    if recent:
        output = sum(usage.output for _, usage in recent) // len(recent)
    tokens = prompt + output if wanted.tokens is None else wanted.tokens
    if wanted.microusd is not None:
        return Amount(tokens, wanted.microusd)
    spent = [uses.spent_by(call) for call, _ in recent]
    counted, cost = sum(one.tokens for one in spent), sum(one.microusd for one in spent)
    if counted and cost:
        return Amount(tokens, -(-cost * tokens // counted))
    price = prices.price(session.model)
    usage = Usage(uncached=max(0, tokens - output), output=min(tokens, output))
    return Amount(tokens, prices.cost(usage, price) if price else 0)


def reserve(session: Session, wanted: PlannedCall, prompt: int, now: datetime) -> dict[str, Any]:
    """Check whether a call of `prompt` tokens may be made, as answered by the API; reserve it if it
    may and has an id.

    Repeating the id returns the stored answer while it is reserved or settled. A refusal is an
    answer, not an exception.
    """
    with transaction.atomic():
        locked = Session.objects.select_for_update(of=("self",)).get(pk=session.pk)
        known = Reservation.objects.filter(session=locked, call=wanted.call).first()
        if wanted.call and known is not None and known.state != Reservation.State.RELEASED:
            return dict(known.answer)
        estimate = estimate_of(locked, wanted, prompt)
        budgets = uses.budgets_for(locked)
        late = list(expired(now, locked.team))
        ids = {id for one in late for id in one.uses}
        everything, _ = uses.locked(locked, budgets, now, also=ids)
        end(everything, late, Reservation.State.RELEASED)
        held = counting(everything, locked, budgets, now)
        limiting = [use for use in held if use.budget_id in uses.in_force(budgets)]
        found = findings(limiting, estimate, locked, wanted.call)
        verdict = judge(found, estimate)
        approval = None
        if verdict.require_approval and wanted.call:
            approval = ask(limiting, found, locked, wanted.call, estimate)
        reserved = verdict.can_proceed and bool(wanted.call) and bool(held)
        if reserved:
            for use in held:
                use.take(use.account.reserve(estimate))
            _no_longer_waiting(held, locked, wanted.call)
        warnings = latch(session, limiting)
        uses.save(everything, now)
        answer = answer_to(verdict, estimate, wanted, limiting, warnings, approval)
        if reserved:
            answer["expires"] = (now + wanted.held).isoformat()
            _keep(locked, wanted, estimate, held, answer, now)
        if warnings or approval is not None or not verdict.can_proceed:
            publish(locked)
    return answer


def counting(
    everything: list[Use], session: Session, budgets: Sequence[Budget], now: datetime
) -> list[Use]:
    """The locked uses that belong to a session and these budgets in the current term."""
    keys, ids = uses.keys_of(session), {one.pk for one in budgets}
    return [
        use
        for use in everything
        if use.budget_id in ids
        and (use.key, use.term) == (keys[use.budget.scope], use.budget.term(now))
    ]


def findings(
    limiting: list[Use], estimate: Amount, session: Session, call: str
) -> list[AccountState]:
    """Compare each use with a call of that size."""
    refused = set()
    if call:
        rows = Approval.objects.filter(session=session, call=call, state=Approval.State.REFUSED)
        refused = set(rows.values_list("use_id", flat=True))
    return [
        AccountState(
            use.account, uses.called(use), use.account.exceeded(estimate), refused=use.pk in refused
        )
        for use in limiting
    ]


def ask(
    limiting: list[Use], found: list[AccountState], session: Session, call: str, estimate: Amount
) -> Approval | None:
    """Create the approvals a call needs and return the first; each use has at most one waiting."""
    asked = []
    by_use = {one.name: one for one in found}
    for use in limiting:
        finding = by_use.get(uses.called(use))
        if finding is not None and finding.exceeded and finding.account.mode == "approval":
            row, _ = Approval.objects.get_or_create(
                use=use,
                state=Approval.State.WAITING,
                defaults={
                    "session": session,
                    "call": call,
                    "tokens": estimate.tokens,
                    "microusd": estimate.microusd,
                },
            )
            asked.append(row)
    return asked[0] if asked else None


def _no_longer_waiting(held: list[Use], session: Session, call: str) -> None:
    """Delete approvals that this call no longer needs, as after a limit was raised."""
    rows = Approval.objects.filter(use__in=held, state=Approval.State.WAITING)
    rows.filter(session=session, call=call).delete()


def latch(session: Session, limiting: Iterable[Use]) -> tuple[str, ...]:
    """Thresholds that uses crossed since the last check, in words; each is announced once."""
    warnings = []
    for use in limiting:
        account, new = use.account.latched()
        use.take(account)
        share = percent(account.share())
        for mark in new:
            budget_passed.send(latch, use=use, mark=mark, session=session)
        warnings += [f"The {uses.called(use)} passed {mark / 10:g} %: {share}." for mark in new]
    return tuple(warnings)


def answer_to(
    verdict: Verdict,
    estimate: Amount,
    wanted: PlannedCall,
    limiting: list[Use],
    warnings: Sequence[str],
    approval: Approval | None,
) -> dict[str, Any]:
    """The answer to a check, as returned by the API."""
    return {
        "can_proceed": verdict.can_proceed,
        "reason": verdict.reason,
        "paused": False,
        "require_approval": verdict.require_approval,
        "approval": str(approval.pk) if approval else None,
        "warnings": list(warnings),
        "delay_ms": verdict.delay_ms,
        "retry_after": verdict.delay_ms / 1000,
        "call": wanted.call,
        "estimate": asdict(estimate),
        "estimated": wanted.tokens is None,
        "expires": None,
        "budgets": [uses.describe_use(use) for use in limiting],
    }


def _keep(
    session: Session,
    wanted: PlannedCall,
    estimate: Amount,
    held: list[Use],
    answer: dict[str, Any],
    now: datetime,
) -> None:
    Reservation.objects.update_or_create(
        session=session,
        call=wanted.call,
        defaults={
            "tokens": estimate.tokens,
            "microusd": estimate.microusd,
            "state": Reservation.State.OPEN,
            "uses": [use.pk for use in held],
            "answer": answer,
            "expires": now + wanted.held,
        },
    )


# After the call


def spent_before(calls: Sequence[ModelCall]) -> list[tuple[ModelCall, Amount]]:
    """Pair calls with the amounts already counted for them."""
    keys = [call.pk for call in calls if call.pk is not None]
    rows = ModelCall.objects.filter(pk__in=keys) if keys else ()
    stored = {row.pk: uses.spent_by(row) for row in rows}
    return [(call, stored.get(call.pk, Amount())) for call in calls]


def settle(session: Session, reports: Sequence[tuple[ModelCall, Amount]], now: datetime) -> Settled:
    """Count the additional usage of reported calls; end their reservations.

    Call inside a transaction that holds the session's lock, with the calls saved.
    """
    budgets = uses.budgets_for(session)
    opened = list(open_reservations(session).order_by("pk"))
    if not budgets and not opened:
        return Settled()
    more = Amount()
    for call, before in reports:
        more += uses.spent_by(call) - before
    ending = settled_by(opened, reports)
    ids = {id for one in ending for id in one.uses}
    everything, begun = uses.locked(session, budgets, now, also=ids)
    end(everything, ending, Reservation.State.SETTLED)
    held = counting(everything, session, budgets, now)
    for use in held:
        if use.pk not in begun:
            use.take(use.account.settle(Amount(), more))
    limiting = [use for use in held if use.budget_id in uses.in_force(budgets)]
    warnings = latch(session, limiting)
    uses.save(everything, now)
    return Settled(tuple(uses.describe_use(use) for use in limiting), warnings)
