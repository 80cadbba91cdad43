"""Rows of budget usage: find, create, lock, and describe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q

from compaction.budget.budget import delay_of
from compaction.budget.spending import Amount
from compaction.prices import prices
from compaction.prices.billed import cost_of
from sessions.actions.budgets.budgets import term_begins
from sessions.models import Budget, ModelCall, Session, Use
from sessions.models.record.model_calls import call_of
from sessions.models.record.sessions import SOURCE_LIVE

FIELDS = ("used", "reserved", "extra")


def spent_by(call: ModelCall) -> Amount:
    """What a call spent according to its usage; zero if usage or price is unknown."""
    value = call_of(call)
    if value.usage is None:
        return Amount()
    billed = value.usage.billed
    return Amount(billed.prompt + billed.output, prices.micros(cost_of(value, prices.price) or 0))


def keys_of(session: Session) -> dict[str, str]:
    """The session's key in each scope; empty if it has no task or agent."""
    return {"session": session.external_id, "task": session.task, "agent": session.agent}


def budgets_for(session: Session) -> list[Budget]:
    """Budgets that count a live session's spending, including ones not in force."""
    if session.source != SOURCE_LIVE:
        return []
    wanted = Q(pk=None)
    for scope, key in keys_of(session).items():
        if key:
            wanted |= Q(scope=scope, name__in=("", key))
    return list(Budget.objects.filter(wanted, team=session.team_id).order_by("pk"))


def in_force(budgets: Iterable[Budget]) -> set[Any]:
    """Ids of the budgets in force: active ones, a named one overriding the unnamed."""
    active = [one for one in budgets if one.active]
    named = {(one.scope, one.period) for one in active if one.name}
    return {one.pk for one in active if one.name or (one.scope, one.period) not in named}


def stored(session: Session, budgets: Sequence[Budget], now: datetime) -> list[Use]:
    """Existing uses of these budgets by a session in the current term."""
    return list(_rows(session, budgets, now).select_related("budget"))


def _rows(session: Session, budgets: Sequence[Budget], now: datetime) -> Any:
    keys, wanted = keys_of(session), Q(pk=None)
    for one in budgets:
        wanted |= Q(budget=one, key=keys[one.scope], term=one.term(now))
    return Use.objects.filter(wanted)


def locked(
    session: Session, budgets: Sequence[Budget], now: datetime, also: Iterable[int] = ()
) -> tuple[list[Use], set[int]]:
    """Lock the uses of these budgets and those with ids in `also`; also return which were created
    here, including all spending so far.

    Creating one locks its budget; then uses are locked in order of id, so there is no deadlock.
    """
    there = set(_rows(session, budgets, now).values_list("budget_id", flat=True))
    begun = set()
    for one in budgets:
        if one.pk not in there and (made := _begin(session, one, now)) is not None:
            begun.add(made)
    ids = {*_rows(session, budgets, now).values_list("pk", flat=True), *also}
    rows = Use.objects.select_for_update(of=("self",)).select_related("budget")
    return list(rows.filter(pk__in=ids).order_by("pk")), begun


def _begin(session: Session, budget: Budget, now: datetime) -> int | None:
    if Budget.objects.select_for_update().filter(pk=budget.pk).first() is None:
        return None
    key, term = keys_of(session)[budget.scope], budget.term(now)
    known = Use.objects.filter(budget=budget, key=key, term=term).exists()
    if known:  # another transaction created it while we waited
        return None
    spent = _spent_before(session, budget, key, now)
    return Use.objects.create(
        budget=budget, key=key, term=term, used_tokens=spent.tokens, used_microusd=spent.microusd
    ).pk


_COLUMN = {"session": "external_id", "task": "task", "agent": "agent"}


def _spent_before(session: Session, budget: Budget, key: str, now: datetime) -> Amount:
    """Spending of live sessions so far, including calls of this transaction."""
    sessions = Session.objects.filter(
        team=session.team_id, source=SOURCE_LIVE, **{_COLUMN[budget.scope]: key}
    )
    calls = ModelCall.objects.filter(session__in=sessions, uncached__isnull=False)
    since = term_begins(budget, now.astimezone(UTC))
    if since is not None:
        calls = calls.filter(at__gte=int(since.timestamp() * 1000))
    spent = Amount()
    for call in calls.defer("usage_raw").iterator():
        spent += spent_by(call)
    return spent


def has_unpriced(use: Use) -> bool:
    """Whether any of its calls used a model without a known price; their cost counts as zero."""
    budget = use.budget
    sessions = Session.objects.filter(
        team=budget.team_id, source=SOURCE_LIVE, **{_COLUMN[budget.scope]: use.key}
    )
    calls = ModelCall.objects.filter(session__in=sessions, uncached__isnull=False)
    models = calls.order_by().values_list("model", flat=True).distinct()
    return any(prices.price(model, None) is None for model in models)


def save(uses: Iterable[Use], now: datetime) -> None:
    """Save locked uses."""
    rows = list(uses)
    for one in rows:
        one.changed = now
    names = [f"{field}_{unit}" for field in FIELDS for unit in ("tokens", "microusd")]
    Use.objects.bulk_update(rows, [*names, "warned", "changed"])


def fullest(budget: Budget, now: datetime) -> list[Use]:
    """Uses of a budget in the current term, fullest first."""
    rows = budget.uses.filter(term=budget.term(now)).select_related("budget")
    return sorted(rows, key=lambda use: (-use.account.share(), use.key))


def describe_use(use: Use) -> dict[str, Any]:
    """A use as returned by the API; `share` is relative to the limit plus grants."""
    account, budget = use.account, use.budget
    share = account.share()
    return {
        "id": str(budget.pk),
        "scope": budget.scope,
        "key": use.key,
        "period": budget.period,
        "term": use.term,
        "mode": budget.mode,
        "used": asdict(account.used),
        "reserved": asdict(account.reserved),
        "limit": {"tokens": budget.tokens, "microusd": budget.microusd},
        "granted": asdict(account.extra),
        "share": round(share, 6),
        "state": account.state(),
        "delay_ms": delay_of(share),
    }


def called(use: Use) -> str:
    """A use in words, such as "task ferry per day"."""
    period = f" per {use.budget.period}" if use.budget.period else ""
    return f"{use.budget.scope} {use.key}{period}"
