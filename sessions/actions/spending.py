"""Spending of live agents: checked and reserved before a call, settled by what was reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from compaction import prices
from compaction.session import Usage
from compaction.spending import Amount, Finding, Verdict, judge
from sessions.actions import uses
from sessions.actions.folds import tell
from sessions.actions.reserved import end, expired, open_reservations, settled_by
from sessions.actions.served import catch_up
from sessions.actions.tools import offer
from sessions.models import Approval, Budget, ModelCall, Reservation, ServedContext, Session, Use
from sessions.models.values import usage_of, wire_blocks
from sessions.templatetags.figures import percent

HELD = timedelta(minutes=10)
"""How long a reservation holds by default: longer than a model call takes. Ours."""

EXPECTED_OUTPUT = 1_000
"""Tokens of output that are expected of the first call of a session. Ours."""

RECENT = 20
"""Calls whose output and price tell what the next one takes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that is to come. `call` is the agent's own id of it; without one nothing is reserved.

    What is left out is estimated. A reservation holds for `held`.
    """

    call: str = ""
    tokens: int | None = None
    microusd: int | None = None
    held: timedelta = HELD


@dataclass(frozen=True, slots=True)
class Settled:
    """How the budgets of a session stand after a report, and what is to be warned of, once."""

    budgets: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def delay_ms(self) -> int:
        """Advice of the fullest."""
        return max((one["delay_ms"] for one in self.budgets), default=0)


def next_prompt(session: Session) -> int:
    """Tokens of the context that the next call would be handed out, in the form that the session
    took last: with what others shared, without tools that are not sent.

    To be called before a transaction, or with the fold at hand.
    """
    plan = catch_up(session)
    taken = ServedContext.objects.filter(run=plan.run).order_by("-created")
    form = taken.values_list("format", flat=True).first() or "anthropic"
    setup = [block for block in plan.blocks if block.type == "tools"]
    plan, _ = offer(plan, wire_blocks(session, setup), form)
    return plan.standing.used


def estimate_of(session: Session, wanted: Wanted, prompt: int) -> Amount:
    """What a call may take: as given, else its prompt and the mean output of the last calls.

    Money is by what the last calls cost a token, else by list prices without a cache; 0 where no
    price is known.
    """
    rows = session.calls.exclude(fresh=None).order_by("-step")
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
    usage = Usage(fresh=max(0, tokens - output), output=min(tokens, output))
    return Amount(tokens, prices.cost(usage, price) if price else 0)


def check(session: Session, wanted: Wanted, now: datetime) -> dict[str, Any]:
    """Whether a call may go out, as the API answers; where it may and has an id, it is reserved.

    The same id again is answered the same while it is reserved or settled. Never raises for money:
    a refusal is an answer. To be called before a transaction, or with the fold at hand.
    """
    prompt = next_prompt(session) if wanted.tokens is None else 0
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
        warnings = latch(limiting)
        uses.save(everything, now)
        answer = answer_to(verdict, estimate, wanted, limiting, warnings, approval)
        if reserved:
            answer["expires"] = (now + wanted.held).isoformat()
            _keep(locked, wanted, estimate, held, answer, now)
        if warnings or approval is not None or not verdict.can_proceed:
            tell(locked)
    return answer


def counting(
    everything: list[Use], session: Session, budgets: Sequence[Budget], now: datetime
) -> list[Use]:
    """Those of locked uses that a session has of these budgets now."""
    keys, ids = uses.keys_of(session), {one.pk for one in budgets}
    return [
        use
        for use in everything
        if use.budget_id in ids
        and (use.key, use.term) == (keys[use.budget.scope], use.budget.term(now))
    ]


def findings(limiting: list[Use], estimate: Amount, session: Session, call: str) -> list[Finding]:
    """How each use stands to a call of that size."""
    refused = set()
    if call:
        rows = Approval.objects.filter(session=session, call=call, state=Approval.State.REFUSED)
        refused = set(rows.values_list("use_id", flat=True))
    return [
        Finding(
            use.account, uses.called(use), use.account.exceeded(estimate), refused=use.pk in refused
        )
        for use in limiting
    ]


def ask(
    limiting: list[Use], found: list[Finding], session: Session, call: str, estimate: Amount
) -> Approval | None:
    """The approval that a call waits for first; one waits for each use, whoever asked first."""
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
    """What this call waited for it needs no more, as when somebody raised the limit."""
    rows = Approval.objects.filter(use__in=held, state=Approval.State.WAITING)
    rows.filter(session=session, call=call).delete()


def latch(limiting: Iterable[Use]) -> tuple[str, ...]:
    """Thresholds that uses passed since they were last looked at, in words; each is told once."""
    warnings = []
    for use in limiting:
        account, new = use.account.latched()
        use.take(account)
        share = percent(account.share())
        warnings += [f"The {uses.called(use)} passed {mark / 10:g} %: {share}." for mark in new]
    return tuple(warnings)


def answer_to(
    verdict: Verdict,
    estimate: Amount,
    wanted: Wanted,
    limiting: list[Use],
    warnings: Sequence[str],
    approval: Approval | None,
) -> dict[str, Any]:
    """What a check is answered, as the API tells it."""
    return {
        "can_proceed": verdict.can_proceed,
        "reason": verdict.reason,
        "require_approval": verdict.require_approval,
        "approval": str(approval.pk) if approval else None,
        "warnings": list(warnings),
        "delay_ms": verdict.delay_ms,
        "retry_after": verdict.delay_ms / 1000,
        "call": wanted.call,
        "estimate": asdict(estimate),
        "estimated": wanted.tokens is None,
        "expires": None,
        "budgets": [uses.told(use) for use in limiting],
    }


def _keep(
    session: Session,
    wanted: Wanted,
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
    """Calls, each with what it is counted with by what is stored of it."""
    keys = [call.pk for call in calls if call.pk is not None]
    rows = ModelCall.objects.filter(pk__in=keys) if keys else ()
    stored = {row.pk: uses.spent_by(row) for row in rows}
    return [(call, stored.get(call.pk, Amount())) for call in calls]


def settle(session: Session, reports: Sequence[tuple[ModelCall, Amount]], now: datetime) -> Settled:
    """Count what calls took beyond what each was counted with before; their reservations end.

    Inside a transaction that holds the session's lock, with the calls stored.
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
    warnings = latch(limiting)
    uses.save(everything, now)
    return Settled(tuple(uses.told(use) for use in limiting), warnings)
